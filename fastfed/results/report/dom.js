"use strict";
// What every page needs: nodes from data (text, never markup), figures by Vega-Lite, files to save.
const dom = (() => {
  const find = (id) => document.getElementById(id);

  function make(tag, options = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key in node) node[key] = value; else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  // without evaluating text as a program: the page's policy forbids it
  const draw = async (place, specification) => (await vegaEmbed(place, specification,
    { ast: true, renderer: "svg", actions: false })).view;

  function save(name, content) {
    const link = make("a", { download: name, href: URL.createObjectURL(content) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function saveView(view, name, kind) {
    if (kind === "svg") {
      save(`${name}.svg`, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
    } else {
      const canvas = await view.toCanvas(2);
      canvas.toBlob((content) => save(`${name}.png`, content));
    }
  }

  const saveButtons = (title, saveAs) => ["SVG", "PNG"].map((kind) => {
    const button = make("button", { type: "button", "aria-label": `Save as ${kind}: ${title}` },
      `Save as ${kind}`);
    button.addEventListener("click", () => saveAs(kind.toLowerCase()));
    return button;
  });

  return { draw, find, make, save, saveButtons, saveView };
})();
