"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { find, make } = dom;
  const figureId = (name) => `figure-${name}`;
  const claimId = (key) => `claim-${key}`;
  const links = (names, id, words) => names.flatMap((name, place) =>
    [...(place ? [" "] : []), make("a", { href: `#${id(name)}` }, words(name))]);

  function fillTable(table, heads, rows) {
    table.tHead.replaceChildren(make("tr", {}, ...heads.map((head) =>
      make("th", { scope: "col" }, head))));
    table.tBodies[0].replaceChildren(...rows.map((row) => make("tr", {}, ...row.map((cell) =>
      make("td", {}, ...(Array.isArray(cell) ? cell : [cell]))))));
  }

  // ---- figures
  function fillFigures() {
    data.figures.forEach((one, place) => {
      const source = `data:image/svg+xml,${encodeURIComponent(data.pictures[place])}`;
      const judged = one.claims.length ? make("p", { className: "note" }, "claims: ",
        ...links(one.claims, claimId, (key) => key)) : "";
      find(one.section).querySelector(".charts").append(make("figure", { id: figureId(one.name) },
        make("img", { className: "chart", src: source, alt: one.title }), judged,
        make("p", { className: "save" },
          make("a", { download: `${one.name}.svg`, href: source }, "Save as SVG"))));
    });
  }

  // ---- claims
  const figuresOf = (claim) => (claim.figures.length
    ? links(claim.figures, figureId, (name) => name) : ["none"]);

  const shown = new Map(); // key of a claim -> its table of cells

  // the cells of a claim on one instance
  function openCells(claim, instance) {
    const { cells, show } = shown.get(claim.key);
    show(instance);
    cells.open = true;
    cells.scrollIntoView();
  }

  function fillClaim(claim) {
    const table = make("table", { className: "texts" }, make("thead"), make("tbody"));
    const all = claim.cells.length === 1 ? "The only cell"
      : `All ${claim.cells.length.toLocaleString("en-US")} cells`;
    const head = make("summary", {}, all);
    const cells = make("details", { id: `cells-${claim.key}` }, head,
      make("div", { className: "scroll", role: "region", tabIndex: 0,
        "aria-label": `Cells of ${claim.key}` }, table));
    const show = (instance) => {
      const rows = claim.cells.filter((row) => instance === null || row[0] === instance);
      head.textContent = instance === null ? all : `${rows.length.toLocaleString("en-US")} of `
        + `${claim.cells.length.toLocaleString("en-US")} cells: those on ${instance}; close and `
        + "open to see all";
      fillTable(table, claim.columns, rows.map((row) => row.map((one) => one ?? "")));
    };
    cells.addEventListener("toggle", () => { // thousands of rows in all: only those looked at
      if (cells.open && !table.tBodies[0].rows.length) show(null);
    });
    head.addEventListener("click", () => {
      if (!cells.open) return;
      head.textContent = all;
      table.tBodies[0].replaceChildren();
    });
    shown.set(claim.key, { cells, show });
    find("claims").append(make("section", { id: claimId(claim.key), className: "claim" },
      make("h3", {}, claim.key), make("p", {}, claim.claim),
      make("p", {}, make("strong", {}, claim.sentence)),
      make("dl", {}, make("dt", {}, "in the paper"), make("dd", {}, claim.where),
        make("dt", {}, "criterion"), make("dd", {}, claim.criterion),
        make("dt", {}, "figures"), make("dd", {}, ...figuresOf(claim)),
        make("dt", {}, "closest to the limit"), make("dd", {}, make("ul", {},
          ...claim.measured.map((text) => make("li", {}, text))))),
      cells));
  }

  // ---- the matrix: a square for each claim and instance, one stripe for each verdict
  function squareOf(claim, instance) {
    const one = claim.squares[instance];
    if (!one) return "";
    const text = `${claim.key} on ${instance}: ${one.words}. ${one.closest}`;
    const stripes = one.counts.map((count, at) => make("span", { style:
      `flex: ${count} 0 0; background: ${count ? data.verdicts[at][2] : "none"}` }));
    const button = make("button", { type: "button", className: "square", title: text,
      "aria-label": text }, ...stripes, make("b", { "aria-hidden": "true" }, one.symbol));
    button.addEventListener("click", () => openCells(claim, instance));
    return [button];
  }

  function fillVerdicts() {
    const names = data.instances.map((name) => make("span", { title: name }, name)); // upright
    fillTable(find("table"), ["claim", ...names, "verdict"], data.claims.map((claim) =>
      [[make("a", { href: `#${claimId(claim.key)}`, title: claim.claim }, claim.key)],
        ...data.instances.map((name) => squareOf(claim, name)), claim.sentence]));
    find("key").replaceChildren(...data.verdicts.flatMap(([, words, colour, symbol]) =>
      [make("span", { className: "square", style: `background: ${colour}` },
        make("b", {}, symbol)), ` cells ${words} `]));
  }

  // a link to a closed table of cells opens it
  function openTarget() {
    const target = find(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  }

  find("outlook").textContent = data.outlook;
  for (const note of data.notes) find("notes").append(make("p", { className: "note" }, note));
  for (const [key, value] of Object.entries(data.about))
    find("about").append(make("dt", {}, key), make("dd", {}, value));
  fillFigures();
  fillVerdicts();
  data.claims.forEach(fillClaim);
  for (const slip of data.slips) find("slip-list").append(make("li", {}, slip));
  window.addEventListener("hashchange", openTarget);
  openTarget();
})();
