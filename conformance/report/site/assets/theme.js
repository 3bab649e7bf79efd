/* Before anything is painted: the theme that was chosen here before, if the browser keeps it. */
"use strict";

(function () {
  const KEY = "jax-conformance-theme";
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return window.localStorage.getItem(KEY);
    } catch {
      return null; // storage is denied: the system's theme, until the page is left
    }
  }

  function keep(theme) {
    try {
      window.localStorage.setItem(KEY, theme);
    } catch {
      // as above
    }
  }

  const theme = {
    get dark() {
      return (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    },
    toggle() {
      root.dataset.theme = theme.dark ? "light" : "dark";
      keep(root.dataset.theme);
    },
    onChange(tell) {
      system.addEventListener("change", tell);
    },
  };

  const before = kept();
  if (before === "light" || before === "dark") root.dataset.theme = before;
  root.classList.add("scripted");
  window.conformance = window.conformance || {};
  window.conformance.theme = theme;
})();
