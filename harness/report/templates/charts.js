const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Set();

function points(columns) {
  const names = Object.keys(columns);
  const lists = names.map((name) => {
    const column = columns[name];
    return Array.isArray(column) ? column : column.codes.map((code) => column.texts[code]);
  });
  return lists[0].map((_, row) => Object.fromEntries(names.map((name, place) => [name, lists[place][row]])));
}

function fitted(chart, width) {
  const spec = structuredClone(chart.spec);
  spec.datasets = {points: points(chart.columns)};
  const view = spec.spec ?? spec;
  const before = view.width;
  if (spec.spec) {
    spec.columns = Math.min(chart.panels, width >= 560 ? 2 : 1);
    view.width = Math.floor(width / spec.columns) - 72;
  } else {
    view.width = width - 4;
    spec.autosize = {type: "fit-x", contains: "padding"};
  }
  for (const {mark} of view.layer) {
    if (mark.limit) mark.limit *= (spec.spec ? view.width : view.width - 70) / before;
  }
  return spec;
}

function draw(plot, scheme) {
  const chart = charts[plot.dataset.chart];
  const config = structuredClone(schemes[scheme]);
  if (plot.clientWidth < 520) config.legend.columns = 1;
  plot.dataset.scheme = scheme;
  plot.dataset.width = plot.clientWidth;
  drawn.add(plot);
  return vegaEmbed(plot, fitted(chart, plot.clientWidth), {
    config, renderer: "canvas", actions: {export: true, source: false, compiled: false, editor: false},
  });
}

const now = () => (dark.matches ? "dark" : "light");
const plots = [...document.querySelectorAll(".plot")];

dark.addEventListener("change", () => drawn.forEach((plot) => draw(plot, now())));
let waiting = 0;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => drawn.forEach((plot) => {
    if (plot.clientWidth !== Number(plot.dataset.width)) draw(plot, now());
  }), 200);
});

let opened = [];
addEventListener("beforeprint", () => {
  plots.forEach((plot) => { if (plot.dataset.scheme !== "light") draw(plot, "light"); });
  opened = [...document.querySelectorAll("th details:not([open])")];
  opened.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => {
  opened.forEach((details) => { details.open = false; });
  plots.forEach((plot) => { if (plot.dataset.scheme !== now()) draw(plot, now()); });
});

for (const plot of plots) {
  if (!drawn.has(plot)) await draw(plot, now());
  await new Promise((done) => setTimeout(done));
}
