/* The matrix page: filters, and what they choose drawn. */
"use strict";

(function () {
  const ROWS_AT_ONCE = 32;
  const PAUSE = 30; // milliseconds in which what was drawn is painted
  const site = window.conformance;
  const { model, readChoice, writeChoice, tracksOf, chosenRows, columnsOf } = site.matrixModel;
  const { about, element, plain, segmentsOf, caseRow, familyRow, talliesOf, headRows } = site.matrixRows;
  const $ = (id) => document.getElementById(id);
  const made = model(site.matrix);
  const grid = $("grid");
  const keys = site.matrixKeys(grid);
  const head = element("div", "heads", "rowgroup");
  const drawn = { layout: [], signature: "", columns: [] };
  let choice = readChoice(window.location.hash);
  let later = 0;

  /* ---- rows, made once; what is in them when they are shown ---- */
  const families = made.families.map((family) => {
    const group = element("div", "family", "rowgroup");
    const sum = familyRow(family);
    const rows = family.rows.map((row) => ({ row, line: caseRow(row), signature: null }));
    sum.querySelector("button").addEventListener("click", () => toggle("closed", family.name));
    group.append(sum, ...rows.map(({ line }) => line));
    return { ...family, group, sum, rows, signature: null };
  });
  grid.append(head, ...families.map(({ group }) => group));
  const longest = families.flatMap(({ rows }) => rows).reduce((most, { row }) => Math.max(most, row.short.length), 0);
  grid.style.setProperty("--longest", Math.min(longest, 160));

  function layoutOf(tracks, rows) {
    let offset = 0;
    return tracks.map((track) => {
      const columns = columnsOf(track, rows, choice);
      const part = { track, columns, offset };
      offset += columns.length;
      return part;
    });
  }

  function signatureOf(layout) {
    return layout.map(({ track, columns }) => `${track.index}:${columns.map((c) => `${c.from}${c.folded ? "f" : ""}${c.key ? "k" : ""}`)}`).join(";");
  }

  function drawHead(layout) {
    head.replaceChildren(...headRows(layout));
    const count = layout.reduce((sum, { columns }) => sum + columns.length, 0);
    grid.style.setProperty("--columns", count);
    grid.style.setProperty("--tracks", layout.length);
    const widths = layout.map(({ track, columns }) => (track.name.length * 0.5 + 0.5) / columns.length);
    grid.style.setProperty("--widest", `${Math.max(4.5, ...widths)}rem`);
    grid.setAttribute("aria-colcount", count + 1);
    grid.classList.toggle("folds", layout.some(({ columns }) => columns.some(({ folded }) => folded)));
    drawn.columns = [...head.querySelectorAll(".column")];
  }

  function fill(line, cells) {
    line.replaceChildren(line.firstChild, ...cells);
  }

  function drawFamily(family, chosen, layout, signature) {
    const rows = family.rows.filter(({ row }) => chosen.has(row));
    const closed = choice.closed.has(family.name);
    family.group.hidden = !rows.length;
    family.sum.querySelector("button").setAttribute("aria-expanded", String(!closed));
    family.sum.querySelector(".number").textContent = rows.length === family.rows.length ? rows.length : `${rows.length} of ${family.rows.length}`;
    const key = `${signature}|${rows.map(({ row }) => row.name)}`;
    if (rows.length && family.signature !== key) {
      fill(family.sum, talliesOf(made, rows.map(({ row }) => row), layout));
      family.signature = key;
    }
    for (const one of family.rows) {
      one.line.hidden = closed || !chosen.has(one.row);
      if (!one.line.hidden && one.signature !== signature) stale.push(one);
    }
  }

  /* Rows beyond the first screen are filled after it is painted, a few at a time. */
  const stale = [];

  function fillRows(most) {
    for (const one of stale.splice(0, most)) {
      fill(one.line, segmentsOf(made, one.row, drawn.layout));
      one.signature = drawn.signature;
    }
    if (stale.length) later = setTimeout(fillRows, PAUSE, ROWS_AT_ONCE);
  }

  function draw() {
    const tracks = tracksOf(made, choice);
    const rows = chosenRows(made, choice, tracks);
    const layout = layoutOf(tracks, rows);
    const signature = signatureOf(layout);
    if (signature !== drawn.signature) drawHead(layout);
    Object.assign(drawn, { layout, signature });
    const chosen = new Set(rows);
    clearTimeout(later);
    stale.length = 0;
    for (const family of families) drawFamily(family, chosen, layout, signature);
    fillRows(ROWS_AT_ONCE);
    tell(rows);
    keys.renew();
  }

  function tell(rows) {
    const all = made.rows.length;
    $("shown").textContent = rows.length === all ? `${all} cases` : `${rows.length} of ${all} cases`;
    $("nothing").hidden = rows.length > 0;
    $("nothing").textContent = choice.only.has("unexpected") ? "Nothing unexpected here." : "No case is like that.";
    $("clear").hidden = !writeChoice({ ...choice, closed: new Set(), open: new Set() });
    $("fold-all").textContent = choice.closed.size ? "Unfold families" : "Fold families";
    for (const column of drawn.columns) column.classList.toggle("sought", column.dataset.release === choice.release);
  }

  /* ---- choosing ---- */
  function keep() {
    const said = writeChoice(choice);
    try {
      window.history.replaceState(null, "", `#${said}`);
    } catch {
      window.location.hash = said;
    }
    showChoice();
    draw();
  }

  function toggle(name, value) {
    if (!choice[name].delete(value)) choice[name].add(value);
    keep();
  }

  function set(name, value) {
    choice[name] = value;
    keep();
  }

  function showChoice() {
    if ($("filter-text").value !== choice.text) $("filter-text").value = choice.text;
    $("filter-family").value = choice.family;
    $("filter-track").value = choice.track;
    for (const button of document.querySelectorAll("[data-only]")) button.setAttribute("aria-pressed", String(choice.only.has(button.dataset.only)));
    for (const button of document.querySelectorAll("[data-verdict]")) button.setAttribute("aria-pressed", String(choice.verdict.has(button.dataset.verdict)));
  }

  function option(value, text) {
    const one = element("option", "", "", text);
    one.value = value;
    return one;
  }

  function setUpFilters() {
    const kinds = [...new Set(made.tracks.map(({ kind }) => kind))].filter((kind) => !made.tracks.some(({ name }) => name === kind));
    $("filter-family").append(option("", "all"), ...made.families.map(({ name }) => option(name, name)));
    $("filter-track").append(option("", "all"), ...(kinds.length > 1 ? kinds.map((kind) => option(kind, `every ${kind}`)) : []), ...made.tracks.map(({ name }) => option(name, name)));
    const verdicts = new Map();
    for (const row of made.rows) for (const states of row.at) for (const state of states) if (state) verdicts.set(made.states[state][0], (verdicts.get(made.states[state][0]) || 0) + 1);
    for (const [verdict, letter] of made.letters) {
      if (!verdicts.has(verdict)) continue;
      const button = element("button", `x-${verdict}`);
      button.type = "button";
      button.dataset.verdict = verdict;
      button.title = made.meanings.get(verdict);
      button.append(element("b", "", "", letter), ` ${plain(verdict)} `, element("span", "number", "", verdicts.get(verdict).toLocaleString("en")));
      $("filter-verdict").append(button);
      $("letters").append(element("b", "", "", letter), ` ${plain(verdict)}: ${made.meanings.get(verdict)}. `);
    }
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("filter-text").addEventListener("input", (event) => set("text", event.target.value));
    $("filter-family").addEventListener("change", (event) => set("family", event.target.value));
    $("filter-track").addEventListener("change", (event) => set("track", event.target.value));
    $("filter-only").addEventListener("click", (event) => pressed(event, "only"));
    $("filter-verdict").addEventListener("click", (event) => pressed(event, "verdict"));
    $("clear").addEventListener("click", () => {
      choice = readChoice("");
      keep();
    });
    $("fold-all").addEventListener("click", () => set("closed", choice.closed.size ? new Set() : new Set(made.families.map(({ name }) => name))));
    head.addEventListener("click", (event) => {
      const button = event.target.closest("[data-key]");
      if (button) toggle("open", button.dataset.key);
    });
  }

  function pressed(event, name) {
    const button = event.target.closest(`[data-${name}]`);
    if (button) toggle(name, button.dataset[name]);
  }

  /* ---- words of the cell that is pointed at or has the focus ---- */
  const tip = $("tip");

  function mark(from, to) {
    drawn.columns.forEach((column, i) => column.classList.toggle("here", i >= from && i <= to));
  }

  function showTip(stop) {
    const { words, row, from, to } = about.get(stop);
    mark(from, to);
    if (!words) return hideTip();
    const parts = [element("b", "where", "", words.where)];
    if (row) parts.unshift(element("span", "case", "", row.name));
    parts.push(...words.said.map((said, i) => element("span", i ? "" : "verdict", "", i || !words.verdict || !row ? said : `${made.letters.get(words.verdict)}  ${said}`)));
    if (words.reason) parts.push(element("span", "reason", "", words.reason));
    tip.replaceChildren(...parts);
    tip.hidden = false;
    place(stop.getBoundingClientRect());
  }

  function place(at) {
    const box = $("box").getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.max(at.left, box.left);
    const below = at.bottom + 8 + size.height < window.innerHeight;
    tip.style.left = `${Math.max(8, Math.min(left, window.innerWidth - size.width - 8))}px`;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - size.height - 6)}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  function setUpTip() {
    const over = (event) => {
      const stop = event.target.closest(".stop") || event.target.querySelector(":scope > .stop");
      if (stop && about.has(stop)) showTip(stop);
      else hideTip();
    };
    grid.addEventListener("mouseover", over);
    grid.addEventListener("focusin", over);
    const leave = () => {
      hideTip();
      mark(-1, -1);
    };
    grid.addEventListener("mouseleave", leave);
    grid.addEventListener("focusout", leave);
    $("box").addEventListener("scroll", hideTip, { passive: true });
    $("box").addEventListener("scroll", () => $("box").classList.toggle("scrolled", $("box").scrollLeft > 0), { passive: true });
    document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
  }

  /* ---- the address, keys, and what is sought ---- */
  function seek() {
    const sought = head.querySelector(".column.sought");
    if (sought) {
      $("box").scrollLeft += sought.getBoundingClientRect().left - head.querySelector(".head").getBoundingClientRect().right - 80;
      $("matrix").scrollIntoView({ block: "nearest" });
    }
  }

  function arrive() {
    const hash = window.location.hash.slice(1);
    if (hash && !hash.includes("=")) return; // a part of the page, e.g. its content
    choice = readChoice(hash);
    showChoice();
    draw();
    seek();
  }

  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
    if (event.key === "m") keys.enter();
    if (event.key === "f") {
      event.preventDefault();
      $("filter-text").focus();
    }
  });

  $("matrix").hidden = false;
  setUpFilters();
  setUpTip();
  showChoice();
  draw();
  seek();
  window.addEventListener("hashchange", arrive);
  window.addEventListener("beforeprint", () => fillRows(stale.length));
  window.performance.mark("interactive");
})();
