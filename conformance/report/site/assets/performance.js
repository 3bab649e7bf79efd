/* The page of time and memory: a plot of a phase over the releases for each case. */
"use strict";

(function () {
  const HEIGHT = 170;
  const MOST = 12; // plots at first: all of them would take seconds
  const data = window.PERFORMANCE;
  const $ = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  if (!data || !window.uPlot) return;

  const SECONDS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  const BYTES = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

  function show(value, units) {
    if (value === null || value === undefined) return "";
    const [scale, unit] = units.find(([at]) => value >= at) || units[units.length - 1];
    return `${(value / scale).toPrecision(3)} ${unit}`;
  }

  // A canvas does not know the functions of a style sheet, such as light-dark().
  function resolve(name) {
    const probe = document.createElement("span");
    probe.style.color = colour(name);
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function columns(points) {
    const at = data.releases.map((_, i) => i);
    // The median last, so that its line is drawn on the band.
    const rows = [2, 3, 1].map((column) => at.map((i) => (points.find((p) => p[0] === i) || [])[column] ?? null));
    return [at, ...rows];
  }

  function plot(figure, read, points, inks, units) {
    const axis = { stroke: inks.quiet, grid: { stroke: inks.line, width: 1 }, ticks: { stroke: inks.line }, font: "12px system-ui" };
    const options = {
      width: Math.max(200, figure.clientWidth - 24),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: false }, y: { distr: 3 } },
      axes: [
        { ...axis, values: (_, at) => at.map((i) => data.releases[i] || ""), space: 60, incrs: [1, 2, 3, 4, 5, 8, 10], size: 30 },
        { ...axis, values: (_, at) => at.map((y) => (y === null ? "" : show(y, units))), size: 62 },
      ],
      series: [
        {},
        { stroke: "transparent", points: { show: false } },
        { stroke: "transparent", points: { show: false } },
        { stroke: inks.accent, width: 2, points: { size: 5 }, spanGaps: false },
      ],
      bands: [{ series: [2, 1], fill: inks.band }],
      hooks: {
        setCursor: [
          (u) => {
            const i = u.cursor.idx;
            const value = i === null ? null : u.data[3][i];
            read.textContent = value === null || value === undefined ? "" : `${data.releases[i]}: ${show(value, units)} (${show(u.data[1][i], units)} to ${show(u.data[2][i], units)})`;
          },
        ],
      },
    };
    new window.uPlot(options, columns(points), figure);
  }

  function draw() {
    const [word, phase] = [$("case").value.trim().toLowerCase(), $("phase").value];
    // Memory has no clocks.
    const isMemory = phase.startsWith("memory");
    const [clock, units] = isMemory ? ["bytes", BYTES] : [$("clock").value, SECONDS];
    $("clock").disabled = isMemory;
    const inks = { quiet: resolve("--quiet"), line: resolve("--line"), accent: resolve("--accent"), band: resolve("--f-ok-unknown") };
    const chosen = Object.entries(data.cases).filter(([name, one]) => name.toLowerCase().includes(word) && one.series[phase]?.[clock]);
    const plots = $("plots");
    plots.replaceChildren();
    const render = (from) => {
      for (const [name, one] of chosen.slice(from, from + MOST)) {
        const points = one.series[phase][clock];
        const figure = document.createElement("figure");
        figure.className = "plot";
        const caption = document.createElement("figcaption");
        caption.textContent = one.size === null ? name : `${name} at ${one.size}`;
        const read = document.createElement("div");
        read.className = "read";
        figure.append(caption);
        plots.append(figure);
        const [first, last] = [points[0], points[points.length - 1]];
        figure.setAttribute("aria-label", `${caption.textContent}, ${phase}: ${show(first[1], units)} in ${data.releases[first[0]]}, ${show(last[1], units)} in ${data.releases[last[0]]}`);
        plot(figure, read, points, inks, units);
        figure.append(read);
      }
      const rest = chosen.length - from - MOST;
      if (rest > 0) {
        const more = document.createElement("button");
        more.type = "button";
        more.textContent = `Show ${Math.min(rest, MOST)} of ${rest} more`;
        more.addEventListener("click", () => { more.remove(); render(from + MOST); });
        plots.append(more);
      }
    };
    if (chosen.length) render(0);
    else plots.textContent = "No case has this phase.";
  }

  const phases = new Set(Object.values(data.cases).flatMap((one) => Object.keys(one.series)));
  const ORDER = ["run", "compile", "trace", "lower", "first", "dispatch", "memory of run", "memory of compile", "memory of temporaries"];
  for (const phase of ORDER.filter((name) => phases.has(name))) {
    $("phase").append(new Option(phase, phase));
  }
  $("choice").hidden = $("legend").hidden = false;
  // A case's page links to its plots.
  const follow = () => {
    const named = decodeURIComponent(location.hash.slice(1));
    if (named in data.cases) $("case").value = named;
  };
  follow();
  addEventListener("hashchange", () => { follow(); draw(); });
  for (const id of ["case", "phase", "clock"]) $(id).addEventListener("input", draw);
  $("choice").addEventListener("submit", (event) => event.preventDefault());
  $("theme")?.addEventListener("click", () => setTimeout(draw, 0));
  addEventListener("resize", () => { clearTimeout(draw.later); draw.later = setTimeout(draw, 200); });
  draw();
})();
