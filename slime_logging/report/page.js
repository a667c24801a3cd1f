// Values under the pointer, the other scale, smoothing, filters. It reads numbers and texts that
// stand in the page, and writes texts only: nothing of a run is ever taken as markup or code.
"use strict";
const WIDTH = 640, HEIGHT = 240;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CODE = new Map([...DIGITS].map((digit, place) => [digit, place]));
const SVG = "http://www.w3.org/2000/svg";
const find = (css, within = document) => [...within.querySelectorAll(css)];
const scaleOf = (text) => {
  const [low, high, bend] = text.split(" ").map(Number);
  const bent = (value) => bend ? Math.asinh(value / bend / 2) : value / 2;
  const from = bent(low), width = bent(high) - from;
  return {
    share: (value) => width ? (bent(value) - from) / width : 0.5,
    value: (share) => bend ? 2 * bend * Math.sinh(from + share * width) : 2 * (from + share * width),
  };
};
const numberText = (value, digits = 5) => Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value)
  : Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-4) ? value.toExponential(digits - 1)
  : String(Number(value.toPrecision(digits)));
const decoded = (text, scales) => {
  const numbers = [];
  for (let at = 0; at < text.length;) {
    const size = numbers.length % scales.length ? 3 : 4;
    let whole = 0;
    for (const end = at + size; at < end; at++) whole = whole * 64 + CODE.get(text[at]);
    numbers.push(whole / (64 ** size - 1));
  }
  const points = [];
  for (let at = 0; at < numbers.length; at += scales.length) {
    const [step, low, mean = low, high = low] = scales.map((scale, i) => scale.value(numbers[at + i]));
    points.push({ step, low, mean, high });
  }
  return points;
};
const charts = new Map();
const chartOf = (figure) => {
  if (charts.has(figure)) return charts.get(figure);
  const chart = { steps: scaleOf(figure.dataset.steps), linear: scaleOf(figure.dataset.linear), log: scaleOf(figure.dataset.log) };
  chart.byDefault = figure.classList.contains("log") ? "log" : "linear";
  const values = chart[chart.byDefault];
  const names = find(".legend span", figure).map((element) => element.textContent);
  chart.lines = find("[data-band],[data-exact]", figure).map((group, i) => {
    const isExact = "exact" in group.dataset;
    const scales = isExact ? [chart.steps, values] : [chart.steps, values, values, values];
    const text = group.dataset[isExact ? "exact" : "band"];
    return { group, isExact, name: names[i], pieces: text.split(".").filter(Boolean).map((piece) => decoded(piece, scales)) };
  });
  charts.set(figure, chart);
  return chart;
};
const path = (points) => points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("") + (points.length < 2 ? "h0" : "");
const addPath = (group, kind, d) => {
  if (!d) return;
  const element = document.createElementNS(SVG, "path");
  if (kind) element.setAttribute("class", kind);
  element.setAttribute("d", d);
  group.append(element);
};
const smoothed = (piece, weight) => {
  let sum = 0, total = 0;
  return piece.map((point) => {
    sum = sum * weight + point.mean;
    total = total * weight + 1;
    return { ...point, mean: sum / total };
  });
};
const draw = (figure, wanted, weight) => {
  const chart = chartOf(figure), name = wanted || chart.byDefault, scale = chart[name];
  figure.classList.toggle("log", name === "log");
  for (const { group, isExact, pieces } of chart.lines) {
    const at = (key) => (point) => [chart.steps.share(point.step) * WIDTH, (1 - scale.share(point[key])) * HEIGHT];
    const mean = (all) => all.filter((piece) => piece.length > 1).map((piece) => path(piece.map(at("mean")))).join("");
    group.replaceChildren();
    if (!isExact) addPath(group, "band", pieces.map((piece) => path([...piece.map(at("high")), ...piece.map(at("low")).reverse()]) + "z").join(""));
    if (weight) addPath(group, "raw", mean(pieces));
    addPath(group, "", mean(weight ? pieces.map((piece) => smoothed(piece, weight)) : pieces));
    addPath(group, "dots", pieces.filter((piece) => piece.length === 1).map((piece) => path(piece.map(at("mean")))).join(""));
  }
};
// Values under the pointer, or under the arrow keys.
const reading = document.createElement("div");
reading.className = "reading";
reading.hidden = true;
let read = null;
const nearest = (line, step) => line.pieces.flat().reduce((best, point) => best && Math.abs(best.step - step) <= Math.abs(point.step - step) ? best : point, null);
const stepText = (step) => numberText(Math.abs(step - Math.round(step)) < 1e-3 ? Math.round(step) : step, 7);
const show = (figure, share) => {
  const chart = chartOf(figure), wanted = chart.steps.value(share), svg = figure.querySelector("svg");
  const found = chart.lines.map((line) => ({ line, point: nearest(line, wanted) })).filter(({ point }) => point);
  if (!found.length) return;
  const step = found.map(({ point }) => point.step).reduce((a, b) => Math.abs(a - wanted) <= Math.abs(b - wanted) ? a : b);
  reading.replaceChildren(`step ${stepText(step)}`);
  for (const { line, point } of found) {
    const row = document.createElement("div"), swatch = document.createElement("i"), value = document.createElement("b");
    swatch.className = line.group.getAttribute("class");
    value.textContent = numberText(point.mean);
    row.append(swatch, line.name + " ", value);
    if (point.low < point.high) row.append(` (${numberText(point.low)} to ${numberText(point.high)})`);
    if (Math.abs(point.step - step) > 0.5) row.append(` at ${stepText(point.step)}`);
    reading.append(row);
  }
  const left = (104 + chart.steps.share(step) * WIDTH) / 772 * svg.clientWidth + svg.getBoundingClientRect().left - figure.getBoundingClientRect().left;
  find(".cursor").forEach((element) => element.remove());
  const cursor = document.createElementNS(SVG, "path");
  cursor.setAttribute("class", "grid cursor");
  cursor.setAttribute("d", `M${chart.steps.share(step) * WIDTH} 0v${HEIGHT}`);
  svg.append(cursor);
  figure.append(reading);
  reading.hidden = false;
  const isRight = left > figure.clientWidth / 2;
  reading.style.top = "1.9rem";
  reading.style.left = isRight ? "auto" : `${left + 8}px`;
  reading.style.right = isRight ? `${figure.clientWidth - left + 8}px` : "auto";
  read = { figure, step, steps: [...new Set(chart.lines.flatMap((line) => line.pieces.flat().map((point) => point.step)))].sort((a, b) => a - b) };
};
const hide = () => {
  reading.hidden = true;
  find(".cursor").forEach((element) => element.remove());
  read = null;
};
for (const figure of find("figure")) {
  const svg = figure.querySelector("svg");
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    show(figure, Math.min(1, Math.max(0, ((event.clientX - box.left) / box.width * 772 - 104) / WIDTH)));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    if (!read || read.figure !== figure) return show(figure, by > 0 ? 0 : 1);
    const next = read.steps[read.steps.indexOf(read.step) + by];
    if (next !== undefined) show(figure, chartOf(figure).steps.share(next));
  });
}
// The tools above the charts and the tables.
const textOf = (element) => (element.cells ? [...element.cells] : [element]).map((each) => each.textContent).join("\n").toLowerCase();
const has = (element, words) => {
  const text = words.length ? textOf(element) : "";
  return words.every((word) => text.includes(word));
};
const wordsOf = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
const [filter, scale, smooth] = ["filter", "scale", "smooth"].map((id) => document.getElementById(id));
find(".tools").forEach((tools) => tools.classList.add("live"));
const wasOpen = new Map(find("details").map((details) => [details, details.open]));
const redraw = () => find("figure").forEach((figure) => draw(figure, scale.value, Number(smooth.value)));
scale.addEventListener("change", redraw);
smooth.addEventListener("input", redraw);
filter.addEventListener("input", () => {
  const words = wordsOf(filter);
  for (const details of find("details.metrics")) {
    const figures = find("figure", details), rows = find("table.keys tbody tr", details);
    figures.forEach((figure) => { figure.hidden = !has(figure.querySelector("figcaption b"), words); });
    rows.forEach((row) => { row.hidden = !has(row.querySelector("th"), words); });
    details.hidden = words.length > 0 && [...figures, ...rows].every((element) => element.hidden);
    details.open = words.length ? !details.hidden : wasOpen.get(details);
  }
  find("#index li").forEach((item) => { item.hidden = !has(item, words); });
});
for (const input of find("input.search")) {
  input.addEventListener("input", () => {
    const words = wordsOf(input);
    const section = input.closest("details");
    find("tbody tr, .sample", section).forEach((item) => { item.hidden = !has(item, words); });
    for (const step of find("details", section)) {
      step.hidden = find(".sample", step).every((sample) => sample.hidden);
      step.open = words.length > 0 && !step.hidden;
    }
  });
}
// A link to a chart in a folded section opens it; paper shows everything.
const unfold = () => {
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
  const details = target && (target.tagName === "DETAILS" ? target : target.closest("details"));
  if (details && !details.open) { details.open = true; target.scrollIntoView(); }
};
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => {
  folded = find("details").filter((details) => !details.open);
  folded.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));
