/* Parts of the matrix as elements. What comes from elsewhere goes in as text, never as markup. */
"use strict";

(function () {
  const { covered, tally } = window.conformance.matrixModel;
  const EDGES = { r: "regresses here", f: "is fixed here", c: "changes here", s: "jaxpr or StableHLO changes here" };
  const about = new WeakMap();

  function element(tag, name, role, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (role) made.setAttribute("role", role);
    if (text) made.textContent = text;
    return made;
  }

  const plain = (word) => word.replaceAll("_", " ");

  function rangeOf(track, start, end) {
    const first = track.cells[start][0];
    const last = track.cells[end - 1][0];
    return end - start === 1 ? first : `${first} to ${last} (${end - start} releases)`;
  }

  /* ---- words ---- */
  function wordsOf(made, row, track, segment) {
    const [verdict, outcome, conformance, unexpected, error] = made.states[segment.state];
    const lines = { where: `${rangeOf(track, segment.start, segment.end)} on ${track.name}`, said: [], reason: "", verdict };
    if (!verdict) return { ...lines, said: ["nothing planned"] };
    lines.said.push(`${plain(verdict)}${unexpected ? ", unexpected" : ""}: ${made.meanings.get(verdict)}`);
    if (outcome !== "not_run") {
      const how = error && error !== outcome ? `${plain(outcome)} (${error})` : plain(outcome);
      lines.said.push(conformance === "unknown" ? how : `${how}, ${conformance}`);
    }
    if (segment.edge) lines.said.push(EDGES[segment.edge]);
    lines.reason = made.reasons[segment.reason];
    return lines;
  }

  function sentence(words) {
    return [words.said.join(", "), words.where, words.reason].filter(Boolean).join("; ");
  }

  /* ---- a case ---- */
  function addressOf(made, row, track, segment) {
    if (segment.edge) return `${row.page}#${track.slug}@${track.cells[segment.start][1]}`;
    if (row.about[track.index].ran) return `${row.page}#${track.slug}`;
    return `${row.page}#exclusions`;
  }

  function segmentOf(made, row, track, segment, columns, offset) {
    const { first, count } = covered(columns, segment);
    if (!count) return null;
    const [verdict, outcome, , unexpected, error] = made.states[segment.state];
    const cell = element("div", `seg ${made.fills[segment.state]}`, "gridcell");
    if (unexpected) cell.classList.add("wrong");
    if (segment.edge) cell.classList.add("edge", `e-${segment.edge}`);
    cell.style.setProperty("--n", count);
    cell.setAttribute("aria-colindex", offset + first + 2);
    if (count > 1) cell.setAttribute("aria-colspan", count);
    const words = wordsOf(made, row, track, segment);
    let stop = cell;
    if (verdict) {
      stop = element("a");
      stop.href = addressOf(made, row, track, segment);
      stop.textContent = made.letters.get(verdict);
      if (count > 3 && outcome !== "ok" && outcome !== "not_run") stop.append(element("span", "", "", error || plain(outcome)));
      cell.append(stop);
    }
    stop.classList.add("stop");
    stop.tabIndex = -1;
    stop.setAttribute("aria-label", sentence(words));
    about.set(stop, { words, row, from: offset + first, to: offset + first + count - 1 });
    return cell;
  }

  function segmentsOf(made, row, layout) {
    const found = [];
    for (const { track, columns, offset } of layout) {
      const made_ = row.tracks[track.index].map((segment) => segmentOf(made, row, track, segment, columns, offset));
      const kept = made_.filter(Boolean);
      if (kept.length) kept[0].classList.add("first");
      found.push(...kept);
    }
    return found;
  }

  function caseRow(row) {
    const line = element("div", "row", "row");
    const head = element("div", "head", "rowheader");
    const link = element("a", "stop");
    const name = element("bdi", "", "", row.short);
    name.dir = "ltr";
    link.append(name);
    link.href = row.page;
    link.tabIndex = -1;
    link.title = row.title ? `${row.name}: ${row.title}` : row.name;
    about.set(link, { row, from: -1, to: -1 });
    head.append(link);
    line.append(head);
    return line;
  }

  /* ---- a family ---- */
  function familyRow(family) {
    const line = element("div", "row sum", "row");
    const head = element("div", "head", "rowheader");
    const button = element("button", "stop");
    button.type = "button";
    button.tabIndex = -1;
    button.append(element("span", "name", "", family.name), element("span", "number", "", String(family.rows.length)));
    about.set(button, { from: -1, to: -1 });
    head.append(button);
    line.append(head);
    return line;
  }

  /* Shares of what ran; where nothing did, of what was left out. */
  function barOf(made, all) {
    const ran = all.filter(([state]) => made.fills[state] !== "none");
    const counts = ran.length ? ran : all;
    const total = counts.reduce((sum, [, number]) => sum + number, 0);
    let at = 0;
    const parts = counts.map(([state, number]) => {
      const from = at;
      at += (100 * number) / total;
      return `var(--f-${made.fills[state].replace(" ", "-")}) ${from}% ${at}%`;
    });
    return `linear-gradient(to bottom, ${parts.join(", ")})`;
  }

  function byVerdict(made, counts) {
    const found = new Map();
    for (const [state, number] of counts) {
      const verdict = made.states[state][0];
      found.set(verdict, (found.get(verdict) || 0) + number);
    }
    return [...found];
  }

  function tallyOf(made, counts, span) {
    const cell = element("div", "seg", "gridcell");
    cell.style.setProperty("--n", span.count);
    cell.setAttribute("aria-colindex", span.from + 2);
    if (span.count > 1) cell.setAttribute("aria-colspan", span.count);
    const verdicts = byVerdict(made, counts);
    const inner = element("div", "bar");
    if (verdicts.length) {
      inner.style.background = barOf(made, counts);
      cell.append(element("i", "", "", made.letters.get(verdicts[0][0])));
    }
    if (counts.some(([state]) => made.states[state][3])) cell.classList.add("wrong");
    cell.append(inner);
    const said = verdicts.map(([verdict, number]) => `${number} ${plain(verdict)}`);
    const words = { where: span.where, said: said.length ? said : ["nothing planned"], reason: "", verdict: verdicts.length ? verdicts[0][0] : "" };
    if (span.count > 4) {
      const short = verdicts.slice(1).map(([verdict, number]) => `${number} ${made.letters.get(verdict)}`);
      cell.firstChild.textContent = verdicts.length ? [`${verdicts[0][1]} ${made.letters.get(verdicts[0][0])}`, ...short].join("  ") : "";
    }
    cell.classList.add("stop");
    cell.tabIndex = -1;
    cell.setAttribute("aria-label", sentence(words));
    about.set(cell, { words, family: true, from: span.from, to: span.from + span.count - 1 });
    return cell;
  }

  function talliesOf(made, rows, layout) {
    const found = [];
    for (const { track, columns, offset } of layout) {
      const all = columns.map((column) => tally(made, rows, track, column.from));
      const keys = all.map((counts) => counts.join(" "));
      for (let first = 0; first < columns.length; ) {
        let last = first;
        while (last + 1 < columns.length && keys[last + 1] === keys[first]) last++;
        const where = `${rangeOf(track, columns[first].from, columns[last].to + 1)} on ${track.name}`;
        const cell = tallyOf(made, all[first], { from: offset + first, count: last - first + 1, where });
        if (!first) cell.classList.add("first");
        found.push(cell);
        first = last + 1;
      }
    }
    return found;
  }

  /* ---- heads ---- */
  function headRows(layout) {
    const tracks = element("div", "row tracks", "row");
    const releases = element("div", "row releases", "row");
    tracks.append(element("div", "head", "columnheader", "Platform"));
    releases.append(element("div", "head", "columnheader", "Case, by release of jax"));
    for (const { track, columns, offset } of layout) {
      const head = element("div", "place first", "columnheader");
      const name = element("span", "", "", track.name);
      name.title = track.name;
      head.append(name);
      head.style.setProperty("--n", columns.length);
      head.setAttribute("aria-colspan", columns.length);
      tracks.append(head);
      columns.forEach((column, i) => releases.append(columnHead(track, column, offset + i, !i)));
    }
    return [tracks, releases];
  }

  const minor = (release) => release.split(".").slice(0, 2).join(".");

  function columnHead(track, column, index, first) {
    const [release] = track.cells[column.from];
    const head = element("div", "column", "columnheader");
    head.dataset.release = release;
    head.classList.toggle("first", first);
    const before = column.from ? track.cells[column.from - 1][0] : release;
    head.classList.toggle("minor", minor(before) !== minor(release));
    head.setAttribute("aria-colindex", index + 2);
    const size = column.to - column.from + 1;
    const text = column.folded ? `${release}–${track.cells[column.to][0]} (${size})` : release;
    const stop = column.key ? element("button", "", "", text) : element("span", "", "", text);
    if (column.key) {
      stop.type = "button";
      stop.dataset.key = column.key;
      stop.setAttribute("aria-expanded", String(!column.folded));
      stop.title = column.folded ? "Nothing shown changes in these releases: unfold" : "Fold these releases again";
      head.classList.add(column.folded ? "folded" : "opened");
    }
    const target = column.key ? stop : head;
    target.classList.add("stop");
    target.tabIndex = -1;
    about.set(target, { from: index, to: index });
    head.append(stop);
    return head;
  }

  window.conformance.matrixRows = { about, element, plain, segmentsOf, caseRow, familyRow, talliesOf, headRows };
})();
