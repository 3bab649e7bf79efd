/* One stop of the matrix is in the order of tabs; arrow keys go from there. */
"use strict";

(function () {
  const { about } = window.conformance.matrixRows;

  window.conformance.matrixKeys = function (grid) {
    let current = null;
    let column = -1;

    const shown = (line) => !line.hidden && !line.parentElement.hidden;
    const stopsOf = (line) => [...line.querySelectorAll(".stop")];
    const lines = () => [...grid.querySelectorAll("[role=row]:not(.tracks)")].filter(shown);

    function make(stop) {
      if (current && current !== stop) current.tabIndex = -1;
      current = stop;
      current.tabIndex = 0;
    }

    function go(stop) {
      if (!stop) return;
      make(stop);
      stop.focus();
      stop.scrollIntoView({ block: "nearest", inline: "nearest" });
    }

    /* The stop of a line at a column, or the nearest before it. */
    function at(line, wanted) {
      const stops = stopsOf(line);
      return stops.findLast((stop) => about.get(stop).from <= wanted) || stops[0];
    }

    function beside(step) {
      const stops = stopsOf(current.closest("[role=row]"));
      const next = stops[stops.indexOf(current) + step];
      if (next) column = about.get(next).from;
      go(next);
    }

    function over(step) {
      const all = lines();
      const line = all[all.indexOf(current.closest("[role=row]")) + step];
      if (line) go(at(line, column));
    }

    function edge(last, whole) {
      const all = lines();
      const line = whole ? all[last ? all.length - 1 : 0] : current.closest("[role=row]");
      const next = stopsOf(line).at(last ? -1 : 0);
      column = about.get(next).from;
      go(next);
    }

    const KEYS = {
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      ArrowUp: () => over(-1),
      ArrowDown: () => over(1),
      Home: (event) => edge(false, event.ctrlKey),
      End: (event) => edge(true, event.ctrlKey),
    };

    grid.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || !current || event.altKey || event.metaKey) return;
      event.preventDefault();
      KEYS[event.key](event);
    });
    grid.addEventListener("focusin", (event) => {
      const stop = event.target.closest(".stop");
      if (!stop || stop === current) return;
      make(stop);
      const { from, to } = about.get(stop);
      if (column < from || column > to) column = from;
    });

    return {
      /* After rows are redrawn, one of them is a tab stop again. */
      renew() {
        if (!current || !grid.contains(current) || !shown(current.closest("[role=row]"))) {
          const all = lines();
          const line = all.find((one) => one.classList.contains("sum")) || all[0];
          if (line) make(at(line, column));
        }
      },
      enter: () => go(current),
    };
  };
})();
