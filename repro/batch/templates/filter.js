"use strict";
(() => {
  const form = document.querySelector(".filters");
  const names = [...form.elements].map((element) => element.name).filter(Boolean);
  const thumbs = new Map([...document.querySelectorAll("[data-of]")].map((thumb) => [thumb.dataset.of, thumb]));
  const cards = [...document.querySelectorAll(".card")].map((card) => ({
    card,
    text: [...card.children]
      .filter((child) => !child.matches(".points, .provenance, .links"))
      .map((child) => child.textContent).join(" ").replace(/\s+/g, " ").toLowerCase(),
  }));
  const fits = ({ card, text }, wanted) => names.every((name) => {
    const choice = wanted.get(name);
    if (!choice) return true;
    if (name !== "q") return card.dataset[name].split("|").includes(choice);
    return choice.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  });
  const show = () => {
    const wanted = new FormData(form);
    let shown = 0;
    for (const entry of cards) {
      const matches = fits(entry, wanted);
      entry.card.hidden = thumbs.get(entry.card.id).hidden = !matches;
      shown += matches;
    }
    for (const section of document.querySelectorAll(".paper"))
      section.hidden = !section.querySelector(".card:not([hidden]), li:not([hidden])");
    form.querySelector("output").value = `${shown} of ${cards.length} shown`;
    document.querySelector(".nothing").hidden = shown > 0;
  };
  const remember = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", query.size ? `#?${query}` : "#");
  };
  const choose = (query) => {
    const values = new URLSearchParams(query);
    for (const name of names) form.elements[name].value = values.get(name) ?? "";
    show();
  };
  // A link to a hidden figure resets the filters.
  const follow = () => {
    const anchor = decodeURIComponent(location.hash.slice(1));
    if (anchor.startsWith("?")) return choose(location.hash.slice(2));
    const target = anchor && document.getElementById(anchor);
    if (target && target.closest("[hidden]")) {
      choose("");
      target.scrollIntoView();
    }
  };
  form.hidden = false;
  new ResizeObserver(() => {
    const covered = getComputedStyle(form).position === "sticky" ? form.offsetHeight : 0;
    document.documentElement.style.setProperty("--bar", `${covered + 12}px`);
  }).observe(form);
  form.addEventListener("input", () => { show(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { show(); remember(); }));
  for (const link of document.querySelectorAll("[data-show]"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      choose(link.dataset.show);
      remember();
      form.scrollIntoView();
    });
  addEventListener("hashchange", follow);
  show();
  follow();
})();
