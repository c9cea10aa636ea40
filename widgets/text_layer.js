// The page's words as text over its picture, and what can be done with a passage that is selected, or a box that is drawn.

const EM = 100; // px: the size at which words are measured
const LETTERS = 0.86; // of a word's box: the size of its letters
const SMALLEST = 0.006; // of the page: a smaller box was a slip of the mouse
const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map(); // word → its width in ems
const widthOf = (word) => {
  if (!widths.has(word)) {
    if (widths.size > 20000) widths.clear();
    ruler.font = `${EM}px sans-serif`;
    widths.set(word, ruler.measureText(word).width / EM);
  }
  return widths.get(word);
};
// Convert a position on the screen to the unrotated page; both are fractions.
const upright = (quarters, u, v) => [[u, v], [v, 1 - u], [1 - u, 1 - v], [1 - v, u]][quarters];
const clamp = (part) => Math.min(Math.max(part, 0), 1);

// One block for each line, one span for each word. The words flow, so that a search finds phrases; the distances between
// letters and words are chosen so that each word covers its picture. Units are relative to the layer: zoom changes nothing.
const textLayer = (page, lines, shape) => {
  const layer = el("div", { class: "ek-text", role: "document", "aria-label": `words of page ${page}`, "data-page": page });
  layer.append(...lines.map((line) => {
    const [left, right] = [Math.min(...line.map((word) => word[1])), Math.max(...line.map((word) => word[3]))];
    const [top, bottom] = [Math.min(...line.map((word) => word[2])), Math.max(...line.map((word) => word[4]))];
    const size = Math.max(bottom - top, 1) * LETTERS;
    const ems = (length) => length / size / shape; // widths are fractions of the width, sizes of the height
    return el("p", { dir: "auto", style: {
      left: `${left / 100}%`, top: `${top / 100}%`, minWidth: `${(right - left) / 100}%`, height: `${(bottom - top) / 100}%`,
      fontSize: `${size / 100}cqh`, lineHeight: 1 / LETTERS,
    } }, [line.map(([text, x0, , x1], number) => {
      const next = line[number + 1];
      const gap = next ? Math.max(next[1] - x1, x0 - next[3], 0) : 0;
      const letter = (ems(x1 - x0) - widthOf(text)) / text.length;
      const node = el("span", { text: `${text} `, style: {
        letterSpacing: `${letter.toFixed(4)}em`, wordSpacing: `${(ems(gap) - widthOf(" ") - letter).toFixed(4)}em`,
      } });
      node.ekBox = [line[number][1], line[number][2], x1, line[number][4]].map((edge) => edge / 10000);
      return node;
    })]);
  }));
  return layer;
};
// The boxes of words, joined line by line.
const joinLines = (nodes) => {
  const lines = new Map();
  for (const node of nodes) lines.set(node.parentNode, [...(lines.get(node.parentNode) || []), node.ekBox]);
  return [...lines.values()].map((boxes) => [0, 1, 2, 3].map((edge) => Math[edge < 2 ? "min" : "max"](...boxes.map((box) => box[edge]))));
};
// The words in which a selection lies: `whole` with their boxes, and as they were selected, line by line.
const readSelection = (root) => {
  const selection = document.getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const layers = [...root.querySelectorAll(".ek-text")].filter((layer) => range.intersectsNode(layer));
  const parts = layers.slice(0, 1).flatMap((layer) => [...layer.querySelectorAll("span")]).filter((node) => range.intersectsNode(node)).map((node) => {
    const text = node.firstChild;
    const from = range.startContainer === text ? range.startOffset : 0;
    const to = range.endContainer === text ? range.endOffset : text.length;
    return { node, text: text.data.slice(from, to) };
  }).filter((part) => part.text.trim());
  if (!parts.length) return null;
  const nodes = parts.map((part) => part.node);
  const copied = parts.map((part, number) => (number && part.node.parentNode !== parts[number - 1].node.parentNode ? `\n${part.text}` : part.text));
  return {
    page: Number(layers[0].dataset.page), nodes, text: nodes.map((node) => node.textContent).join("").trim(),
    copied: copied.join("").replace(/ +\n/g, "\n").trim(), boxes: joinLines(nodes),
  };
};

const passages = ({ model, root, scroll, leaves, quarters, send, typeOf, onMode }) => {
  const token = () => model.get("version");
  let picked = null; // {page, text, boxes}, with `drawn` for a box: what the bar is about
  let isMarking = false; // true: the mouse draws a box, the arrow keys select words
  let drawing = null; // {leaf, pointer, from, node}
  const bar = el("div", { class: "ek-passage", role: "toolbar", "aria-label": "what to do with this passage", hidden: true });
  bar.addEventListener("mousedown", (event) => { if (event.target.tagName !== "INPUT") event.preventDefault(); }); // keep the selection
  const typed = el("input", {
    type: "text", dir: "auto", "aria-label": "the words in the box", placeholder: "What does it say?",
    onkeydown: (event) => {
      if (event.key === "Enter") { event.preventDefault(); event.stopPropagation(); bar.querySelector("button").click(); }
      if (event.key === "Escape") { event.stopPropagation(); close(); }
    },
  });
  const openField = () => document.querySelector(".ek-fields [data-field][aria-current=true]");
  const textOf = () => (picked.drawn ? typed.value.trim() : picked.text);
  const use = (act) => () => {
    const { page } = picked;
    const passage = { page, text: textOf(), boxes: picked.boxes.map((box) => [page, ...box]) };
    act(passage, picked.copied || passage.text);
    close();
  };
  const draw = () => {
    const type = typeOf(picked.page);
    const field = openField();
    const where = picked.boxes[picked.boxes.length - 1];
    const options = [
      model.get("can_quote") && type ? ["z", `Quote for ${type}`, (passage) => send("quote", passage)] : null,
      field ? ["o", `Value of ${field.querySelector(".ek-field-label").firstChild.textContent}`, ({ page, boxes }, exact) => send("field_value", { field: field.dataset.field, text: exact.replace(/\s+/g, " "), page, boxes: boxes.map((box) => box.slice(1)) })] : null,
      ["n", "Note", (passage) => document.dispatchEvent(new CustomEvent("evalkit-passage", { detail: passage }))],
    ];
    typed.hidden = !picked.drawn;
    fill(bar, typed, options.filter(Boolean).map(([key, text, act]) => el("button", { "data-key": key, onclick: use(act) }, el("span", { text }), kbd(key))),
      el("button", { "data-key": "Escape", "aria-label": "close", onclick: () => close() }, kbd("Esc")));
    bar.hidden = false;
    const leaf = leaves.find((one) => one.page === picked.page);
    const [frame, sheet] = [scroll.parentNode.getBoundingClientRect(), leaf.node.getBoundingClientRect()];
    const corner = upright((4 - quarters(picked.page)) % 4, where[0], where[3]);
    const [left, top] = [sheet.left + corner[0] * sheet.width - frame.left, sheet.top + corner[1] * sheet.height - frame.top + 8];
    Object.assign(bar.style, {
      left: `${Math.min(Math.max(left, 8), Math.max(frame.width - bar.offsetWidth - 8, 8))}px`,
      top: `${Math.min(Math.max(top, 8), frame.height - bar.offsetHeight - 8)}px`,
    });
    if (picked.drawn && !picked.text) typed.focus();
  };
  const close = () => {
    const had = picked;
    picked = null;
    bar.hidden = true;
    bar.replaceChildren(); // so that no key presses a hidden button
    drawing?.node.remove();
    drawing = null;
    mark(false);
    if (!had) return;
    if (!had.drawn) document.getSelection().removeAllRanges();
    if (bar.contains(document.activeElement) || document.activeElement === document.body) scroll.focus({ preventScroll: true });
  };
  let isDown = false;
  let waiting = 0;
  const selected = () => {
    clearTimeout(waiting);
    if (!isDown && !drawing) waiting = setTimeout(look, 120);
  };
  const look = () => {
    const selection = readSelection(root);
    if (selection) { picked = selection; draw(); } else if (picked && !picked.drawn && !bar.contains(document.activeElement)) close();
  };
  const copied = (event) => {
    const selection = readSelection(root);
    if (!selection) return;
    event.clipboardData.setData("text/plain", selection.copied);
    event.preventDefault();
  };

  // -------------------------------------------------------------------------------------------- a box by mouse

  const place = (event) => {
    const box = drawing.leaf.node.getBoundingClientRect();
    return upright(quarters(drawing.leaf.page), clamp((event.clientX - box.left) / box.width), clamp((event.clientY - box.top) / box.height));
  };
  const boxTo = ([x, y]) => [Math.min(x, drawing.from[0]), Math.min(y, drawing.from[1]), Math.max(x, drawing.from[0]), Math.max(y, drawing.from[1])];
  const pressed = (event) => {
    if (event.target.closest(".ek-passage")) return;
    isDown = true;
    const leaf = leaves.find((one) => one.node.contains(event.target) && one.turner.querySelector(".ek-page-image"));
    if (!leaf || event.button !== 0 || !(event.altKey || isMarking) || event.target.closest("[data-edge]")) return;
    event.preventDefault();
    close();
    drawing = { leaf, pointer: event.pointerId, node: el("div", { class: "ek-drawn" }) };
    drawing.from = place(event);
    leaf.turner.append(drawing.node);
    scroll.setPointerCapture(event.pointerId);
  };
  const moved = (event) => {
    if (!drawing || drawing.pointer !== event.pointerId) return;
    const [x0, y0, x1, y1] = boxTo(place(event));
    Object.assign(drawing.node.style, { left: `${100 * x0}%`, top: `${100 * y0}%`, width: `${100 * (x1 - x0)}%`, height: `${100 * (y1 - y0)}%` });
  };
  const released = (event) => {
    isDown = false;
    if (!drawing || drawing.pointer !== event.pointerId) { selected(); return; }
    const box = boxTo(place(event));
    drawing.pointer = null;
    if (event.type === "pointercancel" || box[2] - box[0] < SMALLEST || box[3] - box[1] < SMALLEST) { close(); return; }
    const inside = [...drawing.leaf.turner.querySelectorAll(".ek-text span")].filter(({ ekBox: [x0, y0, x1, y1] }) => (
      box[0] <= (x0 + x1) / 2 && (x0 + x1) / 2 <= box[2] && box[1] <= (y0 + y1) / 2 && (y0 + y1) / 2 <= box[3]));
    picked = { page: drawing.leaf.page, boxes: [box], text: inside.map((node) => node.textContent).join("").trim(), drawn: true };
    typed.value = picked.text;
    draw();
  };

  // -------------------------------------------------------------------------------------------- words by keyboard

  let [anchor, cursor] = [0, 0]; // positions in the page's words
  const spans = () => [...leaves[0].node.querySelectorAll(".ek-text span")];
  const choose = (all, position, isExtended) => {
    cursor = Math.min(Math.max(position, 0), all.length - 1);
    if (!isExtended) anchor = cursor;
    const [first, last] = [all[Math.min(anchor, cursor)].firstChild, all[Math.max(anchor, cursor)].firstChild];
    document.getSelection().setBaseAndExtent(first, 0, last, last.length - 1);
    all[cursor].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const inNextLine = (all, by) => {
    const { ekBox: [x0, , x1], parentNode } = all[cursor];
    const line = by > 0 ? parentNode.nextSibling : parentNode.previousSibling;
    if (!line) return cursor;
    const away = (node) => Math.abs(node.ekBox[0] + node.ekBox[2] - x0 - x1);
    return all.indexOf([...line.children].sort((a, b) => away(a) - away(b))[0]);
  };
  const moveWord = (event) => {
    const all = spans();
    const to = { ArrowRight: () => cursor + 1, ArrowLeft: () => cursor - 1, ArrowDown: () => inNextLine(all, 1), ArrowUp: () => inNextLine(all, -1) }[event.key];
    if (!isMarking || !to || !all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // the arrow keys must not change the page
    choose(all, to(), event.shiftKey);
  };
  const mark = (isOn) => {
    if (isMarking === isOn) return;
    isMarking = isOn;
    scroll.classList.toggle("ek-marking", isOn);
    onMode(isOn);
  };
  const toggle = () => {
    if (isMarking || picked) { close(); return; }
    mark(true);
    scroll.focus({ preventScroll: true });
    const all = spans();
    if (!all.length) return;
    const lit = leaves[0].marks.firstChild?.getBoundingClientRect();
    const atLight = lit ? all.findIndex((node) => { const box = node.getBoundingClientRect(); return box.bottom > lit.top && box.right > lit.left + 1 && box.left < lit.right && box.top < lit.bottom; }) : -1;
    choose(all, Math.max(atLight, 0), false);
  };

  scroll.parentNode.append(bar);
  scroll.addEventListener("pointerdown", pressed);
  scroll.addEventListener("pointermove", moved);
  scroll.addEventListener("keydown", moveWord);
  window.addEventListener("pointerup", released);
  window.addEventListener("pointercancel", released);
  document.addEventListener("selectionchange", selected);
  document.addEventListener("copy", copied);
  model.on("change:version", () => close());
  return {
    toggle, close,
    stop: () => {
      window.removeEventListener("pointerup", released);
      window.removeEventListener("pointercancel", released);
      document.removeEventListener("selectionchange", selected);
      document.removeEventListener("copy", copied);
      clearTimeout(waiting);
    },
  };
};

