"use strict";
(() => {
  const form = document.querySelector(".filters");
  const names = [...form.elements].map((one) => one.name).filter(Boolean);
  const thumbs = new Map([...document.querySelectorAll("[data-of]")].map((one) => [one.dataset.of, one]));
  const cards = [...document.querySelectorAll(".card")].map((card) => ({
    card,
    text: [...card.children]
      .filter((part) => !part.matches(".points, .provenance, .links"))
      .map((part) => part.textContent).join(" ").replace(/\s+/g, " ").toLowerCase(),
  }));
  const fits = ({ card, text }, wanted) => names.every((name) => {
    const asked = wanted.get(name);
    if (!asked) return true;
    if (name !== "q") return card.dataset[name].split("|").includes(asked);
    return asked.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  });
  const show = () => {
    const wanted = new FormData(form);
    let shown = 0;
    for (const one of cards) {
      const fine = fits(one, wanted);
      one.card.hidden = thumbs.get(one.card.id).hidden = !fine;
      shown += fine;
    }
    for (const part of document.querySelectorAll(".paper"))
      part.hidden = !part.querySelector(".card:not([hidden]), li:not([hidden])");
    form.querySelector("output").value = `${shown} of ${cards.length} shown`;
    document.querySelector(".nothing").hidden = shown > 0;
  };
  const remember = () => {
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", asked.size ? `#?${asked}` : "#");
  };
  const choose = (query) => {
    const asked = new URLSearchParams(query);
    for (const name of names) form.elements[name].value = asked.get(name) ?? "";
    show();
  };
  // A link to a figure shows it, whatever the filters hide.
  const follow = () => {
    const place = decodeURIComponent(location.hash.slice(1));
    if (place.startsWith("?")) return choose(location.hash.slice(2));
    const target = place && document.getElementById(place);
    if (target && target.closest("[hidden]")) {
      choose("");
      target.scrollIntoView();
    }
  };
  form.hidden = false;
  new ResizeObserver(() => {
    const covers = getComputedStyle(form).position === "sticky" ? form.offsetHeight : 0;
    document.documentElement.style.setProperty("--bar", `${covers + 12}px`);
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
