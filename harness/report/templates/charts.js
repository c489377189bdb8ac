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
  if (spec.spec) {
    spec.columns = Math.min(chart.panels, width >= 560 ? 2 : 1);
    spec.spec.width = Math.floor((width - 75) / spec.columns) - 22;
  } else {
    spec.width = width - 4;
    spec.autosize = {type: "fit-x", contains: "padding"};
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
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target, now());
  }
}, {rootMargin: "800px"});
plots.forEach((plot) => watcher.observe(plot));

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
