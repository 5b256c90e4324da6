"use strict";
(() => {
  const form = document.querySelector(".filters");
  const fields = [...form.elements].filter((element) => element.name);
  const filters = fields.map((field) => field.name).filter((name) => name !== "sort");
  const openAll = form.querySelector(".open-all");
  const nothing = document.querySelector(".nothing");
  const worst = document.querySelector("#worst .cards");
  const cards = [...document.querySelectorAll(".card")].map((card) => ({
    card,
    home: card.parentElement,
    distance: parseFloat(card.dataset.off ?? -1),
    text: [card.querySelector("summary"), ...card.querySelector(".inside").children]
      .filter((child) => !child.matches(".points, .provenance, .links"))
      .map((child) => child.textContent).join(" ").replace(/\s+/g, " ").toLowerCase(),
  }));
  const byDistance = [...cards].sort((a, b) => b.distance - a.distance);
  let order = "";
  const fits = ({ card, text }, wanted) => filters.every((name) => {
    const choice = wanted.get(name);
    if (!choice) return true;
    if (name !== "q") return card.dataset[name].split("|").includes(choice);
    return choice.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  });
  const shown = () => cards.map(({ card }) => card).filter((card) => !card.hidden);
  const label = () => {
    const visible = shown();
    const all = visible.length > 0 && visible.every((card) => card.open);
    openAll.textContent = all ? "Close all" : "Open all";
  };
  const sort = (wanted) => {
    if (wanted === order) return;
    order = wanted;
    if (order === "distance") worst.append(...byDistance.map(({ card }) => card));
    else for (const { card, home } of cards) home.append(card);
  };
  const show = () => {
    const wanted = new FormData(form);
    sort(wanted.get("sort"));
    for (const entry of cards) entry.card.hidden = !fits(entry, wanted);
    for (const section of document.querySelectorAll(".paper"))
      section.hidden = !section.querySelector(".card:not([hidden])");
    const count = shown().length;
    form.querySelector("output").value = `${count} of ${cards.length} shown`;
    nothing.hidden = count > 0;
    openAll.disabled = count === 0;
    label();
  };
  const remember = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", query.size ? `#?${query}` : "#");
  };
  const choose = (query) => {
    const values = new URLSearchParams(query);
    for (const field of fields) field.value = values.get(field.name) ?? "";
    show();
  };
  // A link to a card opens it. If the card is hidden, the link clears the filters.
  const follow = () => {
    const place = decodeURIComponent(location.hash.slice(1));
    if (place.startsWith("?")) return choose(location.hash.slice(2));
    const target = place && document.getElementById(place);
    if (!target) return;
    const card = target.closest(".card");
    if (target.closest("[hidden]")) choose("");
    if (card) card.open = true;
    target.scrollIntoView();
  };
  let opened = [];
  form.hidden = false;
  new ResizeObserver(() => {
    const covered = getComputedStyle(form).position === "sticky" ? form.offsetHeight : 0;
    document.documentElement.style.setProperty("--bar", `${covered + 12}px`);
  }).observe(form);
  form.addEventListener("input", () => { show(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    const empty = !nothing.hidden;
    choose(order && `sort=${order}`);
    remember();
    if (empty) form.elements.q.focus();
  });
  openAll.addEventListener("click", () => {
    const open = openAll.textContent === "Open all";
    for (const card of shown()) card.open = open;
  });
  document.addEventListener("toggle", label, true);
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
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
