"use strict";
// What pages need: nodes from data (text, never markup), figures by Vega-Lite, files to save.
const dom = (() => {
  const find = (id) => document.getElementById(id);

  function make(tag, options = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key in node && key !== "style") node[key] = value; else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  // ---- light and dark: colours that vanish on a dark ground are exchanged, text and axes lighter
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const LIGHTER = { "#000000": "#f2f2f2", "#0072b2": "#4a9fe0", "#882255": "#f28e8e",
    "#444444": "#bdbdbd", "#222": "#e6e6e6", "#333": "#d0d0d0", "#444": "#bdbdbd", "#555": "#b0b0b0" };
  const tint = (colour, light = !dark.matches) => (light ? colour : LIGHTER[colour] ?? colour);
  function themed(specification, light) {
    const ink = light ? "#1b1b1b" : "#e0e0e0", line = light ? "#ddd" : "#3a3e44";
    const text = JSON.stringify(specification).replace(/"(#[0-9a-f]{3,6})"/g,
      (_, colour) => JSON.stringify(tint(colour, light)));
    const found = JSON.parse(text);
    found.background = light ? "#fff" : "#1e2125";
    found.config = { ...found.config, font: "system-ui, sans-serif",
      axis: { labelColor: ink, titleColor: ink, domainColor: ink, tickColor: ink, gridColor: line,
        gridOpacity: 0.6 },
      legend: { labelColor: ink, titleColor: ink }, view: { stroke: line },
      title: { color: ink, subtitleColor: ink, anchor: "start" } };
    return found;
  }

  // without evaluating text as a program: the page's policy forbids it
  const embed = async (place, specification) => (await vegaEmbed(place, specification,
    { ast: true, renderer: "svg", actions: false })).view;
  const draw = (place, specification) => embed(place, themed(specification, !dark.matches));

  function save(name, content) {
    const link = make("a", { download: name, href: URL.createObjectURL(content) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // a figure for a slide: on white, of one size, with its title; its legend is in the specification
  async function saveFigure(specification, title, name, kind) {
    const wish = { ...specification, width: 620,
      height: Math.max(360, specification.height), autosize: { type: "pad" },
      padding: 12, title: { text: title[0], subtitle: title.slice(1), fontSize: 15 } };
    const view = await embed(make("div"), themed(wish, true));
    if (kind === "svg") {
      save(`${name}.svg`, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
    } else {
      const canvas = await view.toCanvas(2);
      canvas.toBlob((content) => save(`${name}.png`, content));
    }
    view.finalize();
  }

  const saveButtons = (title, saveAs) => ["SVG", "PNG"].map((kind) => {
    const button = make("button", { type: "button", "aria-label": `Save as ${kind}: ${title}` },
      `Save as ${kind}`);
    button.addEventListener("click", () => saveAs(kind.toLowerCase()));
    return button;
  });

  return { dark, draw, find, make, save, saveButtons, saveFigure, tint };
})();
