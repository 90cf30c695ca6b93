"use strict";
// Prices of counts: that of uplinks is C, and all others are fields of the page.
const pricing = (() => {
  const { find, make } = dom;
  const data = JSON.parse(find("data").textContent);
  const counts = Object.keys(data.counts), SENT = counts.indexOf("uplinks");
  const fixed = counts.filter((name) => name !== "uplinks");
  const now = { ...data.prices };

  const pairs = counts.flatMap((one, place) => counts.slice(0, place + 1).map((other) =>
    (one === other ? `var_${one}` : `cov_${other}_${one}`)));

  // one price for each count
  const along = (prices, cost) => counts.map((name) => (name === "uplinks" ? cost : prices[name] ?? 0));
  const at = (cost) => along(now, cost);
  const asked = (cost) => along(data.prices, cost);
  const only = (name, price = 1) => counts.map((one) => (one === name ? price : 0));
  const mean = (row, name) => row.means[counts.indexOf(name)];

  const isNow = (prices) => fixed.every((name) => (prices[name] ?? 0) === (now[name] ?? 0));
  const asAsked = () => isNow(data.prices), onlyPulls = () => isNow({ pulls: 1 });

  // as --price takes them, in a title, and as a sum: pulls + 10 x uplinks + 50 x rounds
  const option = () => fixed.filter((name) => now[name] || name === "pulls")
    .map((name) => `${name}=${now[name]}`).join(",");
  const text = () => (onlyPulls() ? "" : `, ${option()}`);
  const formula = (cost) => counts.map((name, place) => [name, at(cost)[place]])
    .filter(([name, price]) => price || name === "uplinks")
    .map(([name, price]) => (price === 1 ? name : `${price} x ${name}`)).join(" + ");

  function fill(update) {
    for (const name of fixed) {
      const field = make("input", { type: "number", min: 0, step: "any", value: now[name] ?? 0,
        title: data.counts[name] });
      field.addEventListener("input", () => {
        const price = Number(field.value);
        const fits = field.value !== "" && price >= 0 && Number.isFinite(price);
        field.setAttribute("aria-invalid", String(!fits));
        find("wrong-price").textContent = fits ? "" : `The price of ${name} must be a number from 0 on; `
          + `the page still has ${now[name] ?? 0}`;
        if (!fits) return;
        now[name] = price;
        update();
      });
      find("price-fields").append(make("label", {}, make("span", {}, name), field));
    }
    find("prices").open = !onlyPulls();
  }

  return { SENT, asAsked, asked, at, counts, fill, formula, mean, only, onlyPulls, option, pairs, text };
})();
