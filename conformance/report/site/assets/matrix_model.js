/* The matrix without a page: what of it is chosen, and which columns are folded. */
"use strict";

(function () {
  const DIED = new Set(["crashed", "timed_out", "out_of_memory"]);

  /* How a state is filled in: classes, as the style sheet and the legend have them. */
  function fillOf([verdict, outcome, conformance]) {
    if (!verdict) return "blank";
    if (verdict === "not_run") return "waiting";
    if (DIED.has(outcome)) return "died";
    if (outcome === "infra") return "infra";
    if (outcome === "unsupported" || outcome === "not_run") return "none";
    return `${outcome} ${conformance}`;
  }

  function readSegments(numbers) {
    const found = [];
    let start = 0;
    for (let i = 0; i < numbers.length; i += 4) {
      const [length, state, edge, reason] = numbers.slice(i, i + 4);
      found.push({ start, end: start + length, state, edge, reason });
      start += length;
    }
    return found;
  }

  /* What filters ask of a case on one track. */
  function summaryOf(segments, states) {
    const found = { verdicts: new Set(), unexpected: false, changed: false, ran: false };
    for (const segment of segments) {
      const [verdict, outcome, , unexpected] = states[segment.state];
      if (verdict) found.verdicts.add(verdict);
      found.unexpected ||= Boolean(unexpected) || verdict === "not_run";
      found.changed ||= segment.edge !== "" && segment.edge !== "s";
      found.ran ||= Boolean(verdict) && outcome !== "not_run";
    }
    return found;
  }

  function rowOf(one, family, data) {
    const tracks = one.rows.map(readSegments);
    const at = tracks.map((segments, t) => {
      const states = new Uint16Array(data.tracks[t].cells.length);
      for (const segment of segments) states.fill(segment.state, segment.start, segment.end);
      return states;
    });
    return {
      family,
      name: one.name,
      short: one.name.slice(one.name.indexOf("/") + 1),
      title: one.title,
      page: one.page,
      tracks,
      at,
      about: tracks.map((segments) => summaryOf(segments, data.states)),
      text: `${one.name} ${one.title}`.toLowerCase(),
    };
  }

  function model(data) {
    const families = data.families.map((family) => ({
      name: family.name,
      rows: family.cases.map((one) => rowOf(one, family.name, data)),
    }));
    return {
      tracks: data.tracks.map((track, index) => ({ ...track, index })),
      families,
      rows: families.flatMap((family) => family.rows),
      states: data.states,
      reasons: data.reasons,
      letters: new Map(data.verdicts.map(([verdict, letter]) => [verdict, letter])),
      meanings: new Map(data.verdicts.map(([verdict, , meaning]) => [verdict, meaning])),
      worst: new Map(data.verdicts.map(([verdict], rank) => [verdict, rank])),
      fills: data.states.map(fillOf),
    };
  }

  /* ---- what is chosen, as the address says it ---- */
  const LISTS = ["verdict", "only", "open", "closed"];
  const WORDS = ["text", "family", "track", "release"];

  function readChoice(hash) {
    const said = new URLSearchParams(hash.replace(/^#/, ""));
    const choice = {};
    for (const name of WORDS) choice[name] = said.get(name) || "";
    for (const name of LISTS) choice[name] = new Set((said.get(name) || "").split(",").filter(Boolean));
    return choice;
  }

  function writeChoice(choice) {
    const said = new URLSearchParams();
    for (const name of WORDS) if (choice[name]) said.set(name, choice[name]);
    for (const name of LISTS) if (choice[name].size) said.set(name, [...choice[name]].join(","));
    return said.toString();
  }

  function tracksOf(made, choice) {
    if (!choice.track) return made.tracks;
    return made.tracks.filter((track) => track.name === choice.track || track.kind === choice.track);
  }

  function matches(row, choice, words, tracks) {
    if (choice.family && row.family !== choice.family) return false;
    if (!words.every((word) => row.text.includes(word))) return false;
    const about = tracks.map((track) => row.about[track.index]);
    if (choice.verdict.size && !about.some((one) => [...choice.verdict].some((v) => one.verdicts.has(v)))) return false;
    if (choice.only.has("unexpected") && !about.some((one) => one.unexpected)) return false;
    if (choice.only.has("changed") && !about.some((one) => one.changed)) return false;
    return !choice.track || about.some((one) => one.ran);
  }

  function chosenRows(made, choice, tracks) {
    const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
    return made.rows.filter((row) => matches(row, choice, words, tracks));
  }

  /* Columns of a track: a cell each, or neighbours folded where no chosen row changes. */
  function columnsOf(track, rows, choice) {
    const single = (from) => ({ from, to: from, key: "", folded: false });
    const count = track.cells.length;
    if (!choice.only.has("changed")) return Array.from({ length: count }, (_, from) => single(from));
    const begins = new Uint8Array(count);
    for (const row of rows) for (const segment of row.tracks[track.index]) begins[segment.start] = 1;
    const found = [];
    for (let from = 0; from < count; ) {
      let to = from;
      while (to + 1 < count && !begins[to + 1]) to++;
      const key = `${track.slug}@${track.cells[from][1]}`;
      if (to === from) found.push(single(from));
      else if (!choice.open.has(key)) found.push({ from, to, key, folded: true });
      else for (let i = from; i <= to; i++) found.push({ ...single(i), key });
      from = to + 1;
    }
    return found;
  }

  /* Which columns a segment covers; none where it lies within a folded one. */
  function covered(columns, segment) {
    let first = -1;
    let count = 0;
    columns.forEach((column, i) => {
      if (column.from < segment.start || column.from >= segment.end) return;
      if (first < 0) first = i;
      count++;
    });
    return { first, count };
  }

  /* Rows of one family in one column, by state: how many, the worst verdict first. */
  function tally(made, rows, track, from) {
    const numbers = new Map();
    for (const row of rows) {
      const state = row.at[track.index][from];
      if (state) numbers.set(state, (numbers.get(state) || 0) + 1);
    }
    const rank = (state) => made.worst.get(made.states[state][0]) ?? 0;
    return [...numbers].sort((a, b) => rank(a[0]) - rank(b[0]) || a[0] - b[0]);
  }

  window.conformance.matrixModel = {
    model, readChoice, writeChoice, tracksOf, chosenRows, columnsOf, covered, tally,
  };
})();
