// A boundary in doubt: the foot of the page before above the head of this page, what differs boxed, and the two answers.
// An answer acts only after both edges were painted; one that is pressed before waits for them.

const boundaryStrip = ({ model, send, picture, missing, isBox, outlines, tellSeen, onDone }) => {
  const node = el("section", { class: "ek-seam", "aria-label": "does a document begin here?", hidden: true });
  let left = ""; // the doubt that the expert left for the whole page
  let opened = ""; // the doubt that the expert opened again
  let painted = "";
  let drawn = "";
  let ticket = 0;
  const pressed = []; // answers that wait until both edges are painted

  const doubts = () => model.get("doubts");
  const current = () => doubts().find((one) => one.page === model.get("page"));
  const keyOf = (doubt) => `${model.get("version")}:${doubt.page}`;
  const isOpen = () => {
    const doubt = current();
    if (!doubt || left === keyOf(doubt)) return false;
    return opened === keyOf(doubt) || (!doubt.is_decided && (!doubt.issue_id || doubt.issue_id === model.get("issue_id")));
  };
  const answer = (begins) => {
    const doubt = current();
    if (!doubt || !isOpen()) return;
    pressed.push(begins);
    if (painted === keyOf(doubt)) go(doubt);
    else waiting.textContent = "Your answer waits until both pages are on screen.";
  };
  const go = (doubt) => {
    if (!pressed.length || "busy" in node.closest(".ek-pane").dataset) return;
    opened = "";
    send("boundary", { page: doubt.page, begins: pressed.shift() });
  };
  const leave = () => {
    const doubt = current();
    if (doubt) left = keyOf(doubt);
    opened = "";
    draw();
    onDone();
  };
  // Show the doubt on this page again or, on any other page, say where the next one is.
  const open = () => {
    const here = current();
    if (here && node.hidden) { left = ""; opened = keyOf(here); draw(); return; }
    const list = doubts();
    const next = list.find((one) => !one.is_decided && one.page > model.get("page")) || list.find((one) => !one.is_decided) || list[0];
    if (!next) return;
    left = "";
    opened = `${model.get("version")}:${next.page}`;
    send(next.issue_id ? "select" : "page", next.issue_id ? { issue_id: next.issue_id } : { page: next.page });
  };

  const waiting = el("span", { class: "ek-muted", role: "status" });
  const edge = (doubt, side) => {
    const page = doubt.page - 1 + side;
    const [one, why] = [picture(page), missing(page)];
    const boxes = doubt.facts.filter((fact) => fact.differs && isBox(fact.boxes[side]))
      .map((fact) => ({ box: fact.boxes[side], isRed: fact.is_other_patient }))
      .map(({ box: [x0, y0, x1, y1], isRed }) => ({ x0, y0, x1, y1, isRed }));
    const frame = el("div", { class: `ek-seam-frame ek-seam-${side ? "head" : "foot"}`, tabindex: 0, "aria-label": side ? `head of page ${page}` : `foot of page ${page}` },
      el("span", { class: "ek-seam-name", text: side ? `Head of page ${page}` : `Foot of page ${page}` }),
      one && !why ? el("div", { class: "ek-seam-page" }, el("img", { src: one.url, alt: `page ${page}`, draggable: false }),
        outlines(boxes, (box) => `ek-mark ${box.isRed ? "ek-mark-differs" : "ek-mark-unlike"}`))
        : el("div", { class: "ek-seam-text", dir: "auto" }, why ? el("p", { class: "ek-muted", text: `Page ${page} cannot be shown. This text was read on it:` }) : null,
          (side ? doubt.head : doubt.foot).map((line) => el("div", { text: line })), why ? null : el("p", { class: "ek-muted", text: "The picture is coming …" })));
    return frame;
  };
  const draw = () => {
    const doubt = current();
    const wasOpen = !node.hidden;
    node.hidden = !isOpen();
    if (node.hidden) {
      pressed.length = 0;
      painted = drawn = "";
      if (wasOpen) onDone();
      return;
    }
    const isReady = [doubt.page - 1, doubt.page].map((page) => Boolean(picture(page)) || Boolean(missing(page)));
    const says = JSON.stringify([keyOf(doubt), doubt, isReady, model.get("can_separate")]);
    if (says === drawn) return;
    const isSame = drawn && JSON.parse(drawn)[0] === keyOf(doubt);
    drawn = says;
    if (!isSame) painted = "";
    const list = doubts();
    const locked = !model.get("can_separate");
    const button = (begins, text, letter) => el("button", {
      "data-key": letter, "data-focus": `seam ${letter}`, disabled: locked, class: doubt.is_decided && doubt.begins === begins ? "ek-on" : "",
      "aria-pressed": doubt.is_decided && doubt.begins === begins, onclick: () => answer(begins),
    }, text, kbd(letter));
    waiting.textContent = "";
    fill(node,
      el("header", {},
        el("h3", { text: doubt.question }),
        el("div", { class: "ek-row" }, button(true, "A document begins here", "y"), button(false, "The document goes on", "n"),
          el("button", { onclick: leave }, "Whole page", kbd("Esc")), el("span", { class: "ek-grow" }), waiting,
          doubt.is_disputed && !doubt.is_decided ? el("b", { class: "ek-seam-must", text: "Decide this" }) : null,
          el("span", { class: "ek-muted", text: `${list.indexOf(doubt) + 1} of ${list.length} · ${list.filter((one) => one.is_decided).length} decided` })),
        factTable([doubt.page - 1, doubt.page], doubt.facts)),
      edge(doubt, 0),
      el("div", { class: "ek-seam-line", text: `does a document begin on page ${doubt.page}?` }),
      edge(doubt, 1));
    paint(doubt);
  };
  const paint = async (doubt) => {
    const mine = ++ticket;
    const images = [...node.querySelectorAll("img")];
    await Promise.all(images.map((image) => image.decode().catch(() => {})));
    if (mine !== ticket || node.hidden) return;
    const [foot, head] = [".ek-seam-foot", ".ek-seam-head"].map((name) => node.querySelector(name));
    foot.scrollTop = doubt.edges[0] * foot.scrollHeight + 24 - foot.clientHeight; // white at the edges is left out
    head.scrollTop = doubt.edges[1] * head.scrollHeight - 40;
    const isComplete = images.length + [doubt.page - 1, doubt.page].filter((page) => missing(page)).length >= 2;
    if (!isComplete) return;
    requestAnimationFrame(() => setTimeout(() => {
      if (mine !== ticket || node.hidden || document.hidden || !node.checkVisibility({ visibilityProperty: true }) || current()?.page !== doubt.page) return;
      painted = keyOf(doubt);
      waiting.textContent = "";
      node.dataset.painted = doubt.page;
      if (!missing(doubt.page)) tellSeen(doubt.page, doubt.issue_id);
      go(current());
    }, 150));
  };
  model.on("change:answered", () => setTimeout(() => { // the press before this one was answered
    const doubt = current();
    if (doubt && !node.hidden && painted === keyOf(doubt)) go(doubt);
  }));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  });
  // The pages that the strip needs: those on screen first, then those of the next doubt.
  const wants = () => {
    if (!doubts().length || !model.get("page")) return [];
    const list = doubts().filter((one) => !one.is_decided);
    const here = list.findIndex((one) => one.page === model.get("page"));
    const near = here < 0 ? list.slice(0, 1) : [list[here], list[(here + 1) % list.length]];
    return [...(node.hidden ? [] : [model.get("page") - 1, model.get("page")]), ...near.flatMap((one) => [one.page - 1, one.page])];
  };
  return { node, draw, open, leave, wants, isOpen: () => !node.hidden, count: () => doubts().length, undecided: () => doubts().filter((one) => !one.is_decided).length };
};
