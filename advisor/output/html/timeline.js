"use strict";
// Zooms and moves the timeline, and says what stands at the cursor. Names are only ever set as text.
for (const figure of document.querySelectorAll(".timeline")) {
  const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const svg = figure.querySelector("svg.time"), says = figure.querySelector(".says"), mark = figure.querySelector(".cursor");
  const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  let left = 0, shown = width, row = 0, column = 0, held = null;
  const seconds = s => s === 0 ? "0 s" : s >= 1 ? s.toPrecision(3) + " s" : s >= 1e-3 ? (s * 1e3).toPrecision(3) + " ms" : (s * 1e6).toPrecision(3) + " us";
  const unit = s => s / data.span * width;
  const show = () => {
    shown = Math.min(Math.max(shown, width / 5000), width);
    left = Math.min(Math.max(left, 0), width - shown);
    svg.setAttribute("viewBox", left + " 0 " + shown + " " + height);
    const [start, length, phase, iteration, many] = data.columns[column];
    mark.setAttribute("x", unit(start)); mark.setAttribute("width", Math.max(unit(length), shown / 500));
    mark.setAttribute("y", row * data.row);
    const parts = data.kinds.map((kind, at) => [kind, data.cells[row][column][at]]).filter(part => part[1] > 0)
      .map(part => part[0] + " " + seconds(part[1]));
    const why = data.causes.filter(one => one[0] === row && one[1] === phase)
      .map(one => one[2] + ", " + seconds(one[3]) + " in all of the phase");
    says.textContent = data.rows[row] + ", " + data.phases[phase] + (many > 1 ? ", " + many + " instances" : ", iteration " + iteration) +
      ", from " + seconds(start) + " for " + seconds(length) + ": " + (parts.join(", ") || "nothing recorded") +
      (why.length ? ". Waits for " + why.join("; ") : "") + ". Shown: " + seconds(left / width * data.span) + " to " +
      seconds((left + shown) / width * data.span) + ".";
  };
  const reveal = () => {
    const [start, length] = data.columns[column], begin = unit(start), end = begin + unit(length);
    if (begin < left || end > left + shown) left = (begin + end - shown) / 2;
    show();
  };
  const zoom = (factor, at) => { left = at - (at - left) * factor; shown *= factor; show(); };
  const middle = () => { const [start, length] = data.columns[column]; return unit(start + length / 2); };
  const place = event => {
    const box = svg.getBoundingClientRect();
    return [left + (event.clientX - box.left) / box.width * shown, (event.clientY - box.top) / box.height * height];
  };
  const choose = event => {
    const [x, y] = place(event), time = x / width * data.span;
    row = Math.min(Math.max(Math.floor(y / data.row), 0), data.rows.length - 1);
    column = Math.max(data.columns.findLastIndex(one => one[0] <= time), 0);
    show();
  };
  const keys = {
    ArrowLeft: () => { column = Math.max(column - 1, 0); reveal(); },
    ArrowRight: () => { column = Math.min(column + 1, data.columns.length - 1); reveal(); },
    ArrowUp: () => { row = Math.max(row - 1, 0); show(); },
    ArrowDown: () => { row = Math.min(row + 1, data.rows.length - 1); show(); },
    "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()),
    "0": () => { left = 0; shown = width; show(); },
    Home: () => { column = 0; reveal(); }, End: () => { column = data.columns.length - 1; reveal(); },
  };
  svg.addEventListener("keydown", event => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (action) { action(); event.preventDefault(); }
  });
  svg.addEventListener("wheel", event => {
    if (!event.ctrlKey && document.activeElement !== svg) return;
    zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event)[0]); event.preventDefault();
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { svg.focus(); held = { x: event.clientX, left, moved: false }; svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointermove", event => {
    if (!held) return;
    const by = event.clientX - held.x;
    if (held.moved || Math.abs(by) > 3) { held.moved = true; left = held.left - by / svg.getBoundingClientRect().width * shown; show(); }
  });
  svg.addEventListener("pointerup", event => { if (held && !held.moved) choose(event); held = null; });
  for (const button of figure.querySelectorAll("button")) button.addEventListener("click", () => keys[button.value]());
  figure.classList.add("ready");
  show();
}
