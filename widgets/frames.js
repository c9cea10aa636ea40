// A template's boxes, columns and edges, drawn over the page; edges are moved with the mouse or the arrow keys. The kernel
// decides where an edge may be; until it answers, the edge follows the pointer.

const NUDGE = 0.002; // of the page: about a point
const PUSH = 0.02;

const templateFrames = (model, root, send) => {
  const layer = el("div", { class: "ek-frames" });
  const handles = new Map(); // name → node
  let quarters = 0; // quarter turns of the page, clockwise
  let held = null; // {name, pointer}: the edge under the mouse
  let wanted = null; // {name, to}: the wanted position of an edge
  let asked = null; // {name, to}: the position requested last
  let going = ""; // the edge whose moves count as one change for Undo

  const frames = () => model.get("frames");
  const edgeOf = (name) => (frames().edges || []).find((one) => one.name === name);
  const at = (name) => (wanted?.name === name ? wanted.to : edgeOf(name)?.at ?? 0);
  const isWaiting = () => "busy" in root.dataset;

  // One request is under way at a time; the newest position is requested next.
  const ask = () => {
    if (!wanted || isWaiting() || (asked && asked.name === wanted.name && asked.to === wanted.to)) return;
    asked = wanted;
    send("edge", { edge: wanted.name, to: wanted.to, goes_on: going === wanted.name });
    going = wanted.name;
  };
  const answered = () => {
    if (isWaiting()) return;
    if (wanted && !(asked && asked.name === wanted.name && asked.to === wanted.to)) { ask(); return; }
    if (!held) { wanted = null; asked = null; }
    draw();
  };

  const turnedBy = (dx, dy) => [[dx, dy], [dy, -dx], [-dx, -dy], [-dy, dx]][quarters];
  const placeUnder = (event, edge) => {
    const box = layer.getBoundingClientRect();
    const [x, y] = upright(quarters, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    return Math.min(Math.max(edge.axis === "x" ? x : y, 0), 1);
  };

  const pressed = (event) => {
    const node = event.target.closest("[data-edge]");
    if (!node || event.button !== 0 || frames().is_locked) return;
    event.preventDefault();
    node.focus({ preventScroll: true });
    node.setPointerCapture(event.pointerId);
    const edge = edgeOf(node.dataset.edge);
    held = { name: edge.name, pointer: event.pointerId, off: placeUnder(event, edge) - at(edge.name) };
    going = "";
  };
  const dragged = (event) => {
    if (!held || event.pointerId !== held.pointer) return;
    wanted = { name: held.name, to: placeUnder(event, edgeOf(held.name)) - held.off };
    draw();
    ask();
  };
  const released = (event) => {
    if (!held || event.pointerId !== held.pointer) return;
    held = null;
    ask();
    if (!isWaiting()) answered();
  };
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const keyed = (event) => {
    const node = event.target.closest("[data-edge]");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { event.stopPropagation(); root.querySelector(".ek-scroll").focus({ preventScroll: true }); return; }
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    event.stopPropagation(); // the arrow keys must not change the page
    if (frames().is_locked || held) return;
    const edge = edgeOf(node.dataset.edge);
    const [dx, dy] = turnedBy(...ARROWS[event.key]);
    const way = edge.axis === "x" ? dx : dy;
    if (!way) return;
    if (!event.repeat && going !== edge.name) going = "";
    wanted = { name: edge.name, to: Math.min(Math.max(at(edge.name) + way * (event.shiftKey ? PUSH : NUDGE), 0), 1) };
    draw();
    ask();
  };
  const left = (event) => { if (event.target.dataset?.edge === going && !held) going = ""; };
  layer.addEventListener("pointerdown", pressed);
  layer.addEventListener("pointermove", dragged);
  layer.addEventListener("pointerup", released);
  layer.addEventListener("pointercancel", released);
  layer.addEventListener("keydown", keyed);
  layer.addEventListener("focusout", left);

  const percent = (place) => `${place * 100}%`;
  const drawHandle = (edge) => {
    let node = handles.get(edge.name);
    if (!node) {
      node = el("div", { "data-edge": edge.name, role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": 100 });
      handles.set(edge.name, node);
    }
    const place = at(edge.name);
    const [from, to] = [edge.from.name ? at(edge.from.name) : edge.from.at, edge.to.name ? at(edge.to.name) : edge.to.at];
    node.className = `ek-edge ek-edge-${edge.axis} ek-edge-${edge.part}${held?.name === edge.name ? " ek-edge-held" : ""}`;
    node.setAttribute("aria-label", edge.label);
    node.setAttribute("aria-orientation", edge.axis === "x" ? "horizontal" : "vertical");
    node.setAttribute("aria-valuenow", (100 * place).toFixed(1));
    node.setAttribute("aria-valuetext", `${(100 * place).toFixed(1)} % of the page's ${edge.axis === "x" ? "width" : "height"}`);
    node.setAttribute("aria-disabled", String(Boolean(frames().is_locked)));
    node.title = `${edge.label}: drag this edge, or move it with the arrow keys`;
    Object.assign(node.style, edge.axis === "x"
      ? { left: percent(place), top: percent(from), height: percent(to - from), width: "" }
      : { top: percent(place), left: percent(from), width: percent(to - from), height: "" });
    return node;
  };
  const rect = (className, x0, y0, x1, y1, ...children) => el("div", {
    class: className, style: { left: percent(x0), top: percent(y0), width: percent(x1 - x0), height: percent(y1 - y0) },
  }, ...children);

  const drawn = el("div", { class: "ek-frames-drawn", "aria-hidden": "true" });
  const draw = () => {
    const shown = frames();
    const edges = shown.edges || [];
    const regions = (shown.regions || []).map((one) => ({
      ...one, x0: at(`${one.name}.left`), y0: at(`${one.name}.top`), x1: at(`${one.name}.right`), y1: at(`${one.name}.bottom`),
    }));
    const top = Math.min(...regions.map((one) => one.y0));
    const bottom = Math.max(...regions.map((one) => one.y1));
    fill(drawn,
      (shown.columns || []).map((one, number) => rect(`ek-column${number % 2 ? " ek-column-odd" : ""}`, at(one.left), top, at(one.right), bottom,
        el("span", { class: "ek-column-name", text: one.label }))),
      regions.map((one) => rect("ek-region", one.x0, one.y0, one.x1, one.y1, el("span", { class: "ek-region-name", text: one.label }))),
      (shown.ticks || []).map((one) => el("span", {
        class: `ek-tick ${one.is_read ? "ek-tick-read" : "ek-tick-left"}`, text: one.is_read ? "✓" : "!",
        style: { top: percent((one.y0 + one.y1) / 2), left: percent(regions.length ? Math.min(...regions.map((region) => region.x0)) : 0) },
      })));
    for (const name of [...handles.keys()]) if (!edges.some((one) => one.name === name)) { handles.get(name).remove(); handles.delete(name); }
    if (drawn.parentNode !== layer) layer.append(drawn);
    let before = drawn;
    for (const edge of edges) {
      const node = drawHandle(edge);
      if (node.previousSibling !== before) before.after(node); // in the order of Tab
      before = node;
    }
  };

  model.on("change:frames", draw);
  model.on("change:answered", answered);
  model.on("change:version", () => { [held, wanted, asked, going] = [null, null, null, ""]; });
  const first = () => layer.querySelector("[data-edge]")?.focus();
  root.addEventListener("ek-edges", first);
  draw();
  return {
    place: (leaf, turns) => {
      const isHere = (frames().edges || []).length > 0 && frames().page === leaf.page && Boolean(leaf.turner.querySelector(".ek-page-image"));
      if (isHere) {
        quarters = turns;
        if (layer.parentNode !== leaf.turner) leaf.turner.append(layer);
      } else if (layer.parentNode === leaf.turner) layer.remove();
    },
  };
};

