/* Every page: search, theme, keys, and what the newest report says beside the navigation. */
"use strict";

(function () {
  const MOST_FOUND = 12;
  const site = window.conformance;
  const root = document.body.dataset.root;
  const data = site.search || { entries: [], counts: {}, problems: [], ended: "", upgraded: "", suite: "", fuzz: "", ecosystem: "" };
  const $ = (id) => document.getElementById(id);

  function typing(event) {
    const at = event.target;
    return at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
  }

  /* ---- theme ---- */
  function setUpTheme() {
    const button = $("theme");
    const tell = () => button.setAttribute("aria-pressed", String(site.theme.dark));
    site.toggleTheme = () => {
      site.theme.toggle();
      tell();
    };
    button.addEventListener("click", site.toggleTheme);
    site.theme.onChange(tell);
    button.hidden = false;
    tell();
  }

  /* ---- what the newest report says ---- */
  function tellOfReport() {
    for (const mark of document.querySelectorAll("[data-count]")) {
      const number = data.counts[mark.dataset.count];
      mark.hidden = !number;
      mark.textContent = number || "";
      mark.classList.toggle("bad", mark.dataset.count === "causes");
    }
    if (data.upgraded) {
      const link = document.querySelector("[data-upgrade]");
      link.href = root + data.upgraded;
      link.hidden = false;
    }
    for (const page of ["suite", "fuzz", "ecosystem", "performance"].filter((name) => data[name])) {
      const link = document.querySelector(`[data-${page}]`);
      link.href = root + data[page];
      link.hidden = false;
    }
    const problems = $("problems");
    if (problems.hidden && data.problems.length) {
      problems.querySelector("ul").replaceChildren(...data.problems.map((text) => element("li", text)));
      problems.hidden = false;
    }
    const ended = document.querySelector("[data-ended]");
    ended.hidden = !data.ended;
    ended.querySelector("time").textContent = data.ended;
  }

  function element(tag, text, name) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  /* ---- search ---- */
  function matching(words) {
    const found = [];
    for (const [kind, name, about, address] of data.entries) {
      const low = name.toLowerCase();
      const all = `${low} ${about.toLowerCase()}`;
      if (!words.every((word) => all.includes(word))) continue;
      const inName = words.every((word) => low.includes(word));
      const rank = low === words.join(" ") ? 0 : low.startsWith(words[0]) ? 1 : inName ? 2 : 3;
      found.push({ kind, name, about, address, rank });
    }
    return found.sort((a, b) => a.rank - b.rank).slice(0, MOST_FOUND);
  }

  function setUpSearch() {
    const input = $("search");
    const list = $("found");
    let chosen = -1;

    function close() {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
      chosen = -1;
    }

    function choose(number) {
      const items = list.querySelectorAll("[role=option]");
      if (!items.length) return;
      chosen = (number + items.length) % items.length;
      items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
      input.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    }

    function show() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return close();
      const items = matching(words).map((entry, i) => option(entry, `found-${i}`));
      list.replaceChildren(...(items.length ? items : [nothing()]));
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      input.removeAttribute("aria-activedescendant");
      chosen = -1;
      if (items.length) choose(0);
    }

    function nothing() {
      const made = element("li", "nothing found", "nothing");
      made.setAttribute("role", "option");
      made.setAttribute("aria-disabled", "true");
      made.removeAttribute("id");
      return made;
    }

    function option(entry, id) {
      const made = element("li", "");
      made.id = id;
      made.setAttribute("role", "option");
      made.setAttribute("aria-selected", "false");
      made.dataset.address = entry.address;
      made.append(element("span", entry.kind, "what"), element("span", entry.name, "name"), element("span", entry.about, "about"));
      made.addEventListener("mousedown", (event) => {
        event.preventDefault();
        go(made);
      });
      return made;
    }

    function go(item) {
      if (!item || !item.dataset.address) return;
      close();
      input.value = "";
      input.blur();
      window.location.href = root + item.dataset.address;
    }

    input.addEventListener("input", show);
    input.addEventListener("focus", show);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
      } else if (event.key === "Enter") {
        event.preventDefault();
        go(list.querySelectorAll("[role=option]")[Math.max(chosen, 0)]);
      } else if (event.key === "Escape") {
        if (list.hidden) input.blur();
        close();
      }
    });
    document.querySelector(".find").hidden = false;
  }

  /* ---- keys ---- */
  function setUpKeys() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
      if (event.key === "/") {
        event.preventDefault();
        $("search").focus();
      } else if (event.key === "?") {
        event.preventDefault();
        $("keys").showModal();
      } else if (event.key === "t") {
        site.toggleTheme();
      }
    });
  }

  /* ---- what is folded and linked to, or printed, is opened ---- */
  function openAround(target) {
    for (let at = target; at && at !== document.body; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
  }

  function linked() {
    try {
      return $(decodeURIComponent(window.location.hash.slice(1)));
    } catch {
      return null; // no part of a page is called so
    }
  }

  function openLinked() {
    const target = linked();
    if (target) {
      openAround(target);
      openAround(target.nextElementSibling); // a heading of what is folded
      target.scrollIntoView();
    }
  }

  setUpTheme();
  tellOfReport();
  setUpSearch();
  setUpKeys();
  openLinked();
  window.addEventListener("hashchange", openLinked);
})();
