/* An upgrade's page: effects and words that filter it, and what can be copied. */
"use strict";

(function () {
  const TOLD = 1500; // milliseconds in which a button says that it copied
  const $ = (id) => document.getElementById(id);
  const sections = [...document.querySelectorAll("[data-of]")];
  const groups = [...document.querySelectorAll(".group")].map((at) => ({ at, text: at.textContent.toLowerCase() }));
  const names = [...document.querySelectorAll(".names")].map((at) => ({ at, text: at.textContent.toLowerCase() }));
  let choice = { effects: new Set(), text: "" };

  /* ---- what is copied ---- */
  async function copy(from) {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      // Not every browser lets a page from the disk: what is selected can be copied by hand at least.
      window.getSelection().selectAllChildren(from);
      return document.execCommand("copy");
    }
  }

  function setUpCopies() {
    for (const at of document.querySelectorAll(".copies")) {
      const from = at.querySelector("p, code");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", from.id === "verdict" ? "Copy the paragraph" : "Copy the command");
      button.addEventListener("click", async () => {
        button.textContent = (await copy(from)) ? "Copied" : "Selected";
        setTimeout(() => (button.textContent = "Copy"), TOLD);
      });
      at.append(button);
    }
  }

  /* ---- filters, which stand in the address ---- */
  function read(hash) {
    const said = new URLSearchParams(hash);
    return { effects: new Set((said.get("effect") || "").split(",").filter(Boolean)), text: said.get("text") || "" };
  }

  function write({ effects, text }) {
    const said = new URLSearchParams();
    if (effects.size) said.set("effect", [...effects].join(","));
    if (text) said.set("text", text);
    return said.toString();
  }

  function draw() {
    const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = ({ text }) => words.every((word) => text.includes(word));
    for (const one of [...groups, ...names]) one.at.hidden = !wanted(one);
    for (const section of sections) {
      const empty = words.length > 0 && !section.querySelector(".group:not([hidden]), .names:not([hidden])");
      section.hidden = empty || (choice.effects.size > 0 && !choice.effects.has(section.dataset.of));
    }
    const shown = groups.filter(({ at }) => !at.hidden && !at.closest("[data-of]").hidden).length;
    const some = Boolean(write(choice));
    $("shown").textContent = some ? `${shown} of ${groups.length} changes` : `${groups.length} change${groups.length === 1 ? "" : "s"}, by root cause`;
    $("nothing").hidden = sections.some(({ hidden }) => !hidden);
    $("clear").hidden = !some;
    if ($("filter-text").value !== choice.text) $("filter-text").value = choice.text;
    for (const button of document.querySelectorAll("[data-effect]")) button.setAttribute("aria-pressed", String(choice.effects.has(button.dataset.effect)));
  }

  function keep() {
    const said = write(choice);
    try {
      window.history.replaceState(null, "", `#${said}`);
    } catch {
      window.location.hash = said;
    }
    draw();
  }

  function setUpFilters() {
    for (const link of document.querySelectorAll("a[data-effect]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = link.className;
      button.dataset.effect = link.dataset.effect;
      button.append(...link.childNodes);
      button.addEventListener("click", () => {
        if (!choice.effects.delete(button.dataset.effect)) choice.effects.add(button.dataset.effect);
        keep();
      });
      link.replaceWith(button);
    }
    $("narrow").hidden = false;
    $("narrow").addEventListener("submit", (event) => event.preventDefault());
    $("filter-text").addEventListener("input", (event) => {
      choice.text = event.target.value;
      keep();
    });
    $("clear").addEventListener("click", () => {
      choice = read("");
      keep();
      $("filter-text").focus();
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      if (event.key === "f") {
        event.preventDefault();
        $("filter-text").focus();
      }
    });
  }

  /* A link to a group or an effect shows all: what is linked to must not be hidden. */
  function arrive() {
    const hash = window.location.hash.slice(1);
    choice = read(hash.includes("=") ? hash : "");
    draw();
  }

  setUpCopies();
  setUpFilters();
  arrive();
  window.addEventListener("hashchange", arrive);
})();
