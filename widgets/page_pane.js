// The file as a ribbon of pages, and one page large with its highlighted places.

const drawnType = (type) => type || "no type yet";
const KEPT = 24; // full-size pictures that stay here: some 4 MB
const AT_ONCE = 1; // small pictures in one request: a press waits for no more than these
const PATIENCE = 5000; // ms after which an unanswered request is forgotten
const CALM = 200; // ms after a press during which only full-size pages are requested
const STEPS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];
const WIDEST = 1000;
const MARGIN = 48;
const FLAGS = { other_patient: "other patient", duplicate: "duplicate", out_of_order: "out of order" };
const words = (facts) => (facts.length < 2 ? facts.join("") : `${facts.slice(0, -1).join(", ")} and ${facts[facts.length - 1]}`);
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
const isBox = (box) => box[2] > box[0] && box[3] > box[1];

// Pictures are stored per file, not per view: pictures that arrive before the pane is on screen are kept.
function pane() {
  const pictures = { page: new Map(), thumbnail: new Map(), preview: new Map() };
  let onArrival = () => {};

  const forget = () => {
    for (const map of Object.values(pictures)) {
      map.forEach((one) => URL.revokeObjectURL(one.url));
      map.clear();
    }
  };

  function initialize({ model }) {
    let version = model.get("version");
    const tellHeld = () => {
      model.set("held", { version, pages: [...pictures.page.keys()] });
      model.save_changes();
    };
    const received = (message, buffers) => {
      if (message.version !== model.get("version")) return;
      if (buffers && buffers.length && !pictures[message.kind].has(message.page)) {
        const url = URL.createObjectURL(new Blob([buffers[0]], { type: "image/webp" }));
        const one = { url, lines: message.lines };
        if (message.kind === "page") {
          one.image = el("img", { class: "ek-page-image", draggable: false, alt: `page ${message.page}`, src: url });
          one.ready = one.image.decode().catch(() => { one.isBroken = true; });
        }
        pictures[message.kind].set(message.page, one);
        if (message.kind === "page") {
          for (const [page, old] of pictures.page) {
            if (pictures.page.size <= KEPT) break;
            if (page === message.page || old.image.isConnected) continue;
            URL.revokeObjectURL(old.url);
            pictures.page.delete(page);
          }
          tellHeld();
        }
      }
      onArrival(message.kind, message.page);
    };
    const begun = () => {
      if (version === model.get("version")) return;
      version = model.get("version");
      forget();
    };
    model.on("msg:custom", received);
    model.on("change:version", begun);
    return forget;
  }

  function render({ model, el: root }) {
    root.classList.add("ek", "ek-pane");
    const total = () => model.get("total");
    const picture = (page) => pictures.page.get(page);
    const missing = (page) => (model.get("note") ? { what: model.get("note") } : model.get("missing")[page]);
    const token = () => model.get("version");
    const send = counted(model, root, token);

    // ---------------------------------------------------------------------------------------------- layout

    let zoom = 1;
    let isWhole = false; // true: the page is fitted to the window's height; false: to its width
    let isSpread = false;
    const turned = new Map(); // page → quarter turns clockwise
    let shown = 0; // the page on screen
    let target = 0; // the page that was asked for last
    let direction = 1; // direction of the last page change: 1 forwards, -1 backwards
    let leafed = 0; // time of the last page change
    let asking = null; // {page, since}: the kernel's answer is awaited

    const leaf = () => {
      const marks = el("div", { class: "ek-marks" });
      const hits = el("div", { class: "ek-marks" });
      const turner = el("div", { class: "ek-turner" });
      const number = el("div", { class: "ek-leaf-number" });
      const own = el("div", { class: "ek-marks" });
      return { node: el("div", { class: "ek-sheet" }, turner, number), turner, marks, hits, own, number, page: 0 };
    };
    const leaves = [leaf(), leaf()];
    const paper = el("div", { class: "ek-papers" }, leaves.map((one) => one.node));
    const scroll = el("div", { class: "ek-scroll", tabindex: 0, "aria-label": "the page" }, paper);

    const number = el("input", {
      type: "text", class: "ek-number", inputmode: "numeric", "aria-label": "page number",
      onkeydown: (event) => {
        if (event.key === "Enter") { event.stopPropagation(); go(Number.parseInt(number.value, 10)); scroll.focus(); }
        if (event.key === "Escape") { event.stopPropagation(); tellWhere(); scroll.focus(); }
      },
      onfocus: () => number.select(),
      onblur: () => tellWhere(),
    });
    const of = el("span", { class: "ek-of" });
    const tool = (what, label, text, name, props = {}) => el("button", {
      "aria-label": label, title: label, "data-do": what, onclick: () => act(what), ...props,
    }, text ? el("span", { text }) : null, name ? kbd(name) : null);
    const fit = tool("fit", "fit the width, or the whole page", "Fit", "0");
    const spread = tool("spread", "two pages side by side", "2 pages", "b", { "aria-pressed": "false" });
    const seams = el("button", { "data-key": "o", title: "places where a document may begin", hidden: true, onclick: () => seam.open() });
    const strip = el("button", { class: "ek-strip", "aria-describedby": "ek-strip-parts", onclick: () => openCompare() });
    const parts = el("div", { class: "ek-parts", id: "ek-strip-parts", role: "tooltip" });
    const tools = el("div", { class: "ek-tools", role: "toolbar", "aria-label": "page" },
      tool("previous", "previous page", "", "←"), el("span", { class: "ek-counter" }, number, of),
      tool("next", "next page", "", "→"),
      tool("smaller", "smaller", "", "−"), fit, tool("larger", "larger", "", "+"),
      tool("mark", "select words with the arrow keys, or draw a box with the mouse", "Mark", "z", { "aria-pressed": "false" }),
      tool("rotate", "rotate this page", "⟳", "r"), tool("find", "find in the file", "Find", "f"), spread,
      tool("sheet", "all pages", "All pages", "g"), seams,
      el("span", { class: "ek-whose" }, strip, parts));
    const ribbon = el("nav", { class: "ek-ribbon ek-documents", "aria-label": "documents and pages" });
    const card = el("div", { class: "ek-about", role: "tooltip", hidden: true });
    const view = el("div", { class: "ek-view" }, scroll);
    const offer = el("div", { class: "ek-offer", role: "status", hidden: true });
    const middle = el("div", { class: "ek-middle" }, tools, offer, view);
    root.append(ribbon, middle, card);

    const quarters = (page) => turned.get(page) || 0;
    const sizeLeaf = (one, width) => {
      const image = picture(one.page)?.image;
      const [across, down] = image?.naturalWidth ? [image.naturalWidth, image.naturalHeight] : [8.5, 11];
      const isLying = quarters(one.page) % 2 === 1;
      const shape = isLying ? across / down : down / across;
      const room = Math.max(scroll.clientHeight - MARGIN, 200);
      const wide = (isWhole ? Math.min(width, room / shape) : width) * zoom;
      const high = wide * shape;
      Object.assign(one.node.style, { width: `${wide}px`, height: `${high}px` });
      Object.assign(one.turner.style, {
        width: `${isLying ? high : wide}px`, height: `${isLying ? wide : high}px`,
        transform: `translate(-50%, -50%) rotate(${90 * quarters(one.page)}deg)`,
      });
    };
    const size = () => {
      const used = isSpread && leaves[1].page ? 2 : 1;
      const room = Math.min((scroll.clientWidth - MARGIN - 16 * (used - 1)) / used, WIDEST);
      leaves.forEach((one) => sizeLeaf(one, Math.max(room, 200)));
    };
    const rescale = () => {
      const at = [scroll.scrollLeft + scroll.clientWidth / 2, scroll.scrollTop + scroll.clientHeight / 2];
      const before = [scroll.scrollWidth, scroll.scrollHeight];
      size();
      scroll.scrollTo({
        left: (at[0] / before[0]) * scroll.scrollWidth - scroll.clientWidth / 2,
        top: (at[1] / before[1]) * scroll.scrollHeight - scroll.clientHeight / 2,
      });
      tellPainted();
    };
    // The part of the page at the window's upper left corner; if the window changes its size, the browser has moved the page.
    let [corner, sized] = [[0, 0], ""];
    const windowSize = () => `${scroll.clientWidth}×${scroll.clientHeight}`;
    const noteCorner = () => {
      if (sized === windowSize()) corner = [scroll.scrollLeft / paper.offsetWidth, scroll.scrollTop / paper.offsetHeight];
    };
    const sizeInPlace = () => {
      sized = windowSize();
      size();
      scroll.scrollTo({ left: corner[0] * paper.offsetWidth, top: corner[1] * paper.offsetHeight });
    };
    const scale = (by) => {
      const at = STEPS.findIndex((step) => step >= zoom);
      zoom = STEPS[Math.min(Math.max(at + by, 0), STEPS.length - 1)];
      rescale();
    };

    // ---------------------------------------------------------------------------------------------- turning

    // One request is under way at a time: held keys request the page where they stop, not every page between.
    const request = () => say(model, { action: "page", token: token(), page: target, cached: Boolean(picture(target)) });
    const ask = () => {
      if (asking && Date.now() - asking.since < PATIENCE) return;
      asking = model.get("note") ? null : { page: target, since: Date.now() };
      request();
      pump();
    };
    const unpaint = () => { painting += 1; delete root.dataset.painted; delete root.dataset.told; };
    const go = (page) => {
      if (!Number.isInteger(page) || page < 1 || page > total() || page === target) {
        // A press on another panel that is not answered yet may turn the page: the last press decides where it ends.
        if (page === target && document.querySelector(".ek[data-busy]")) request();
        tellWhere();
        return;
      }
      passage.close();
      leafed = Date.now();
      direction = page === target - 1 ? -1 : 1;
      target = page;
      root.dataset.asked = page;
      unpaint();
      if (picture(page) || missing(page)) { shown = page; lay(); }
      ask();
    };
    const turnedTo = () => {
      const page = model.get("page");
      if (asking?.page === page) {
        asking = null;
        if (target !== page) { ask(); return; } // another page was asked for meanwhile
      } else if (!asking) root.dataset.asked = target = page; // an issue or a quote was opened; unless a page change is still to be answered
      unpaint();
      shown = page;
      lay();
    };

    // ---------------------------------------------------------------------------------------------- the page

    const tellWhere = () => {
      if (document.activeElement !== number) number.value = shown || ""; // not while the expert types a number
      number.style.width = `${String(total()).length + 3}ch`;
      of.textContent = shown ? `of ${total()}` : "";
    };
    // Never show the picture of another page, or another patient, next to the words about this page.
    const blank = () => {
      unpaint();
      leaves.forEach((one) => { one.turner.replaceChildren(); one.page = 0; });
      delete root.dataset.page;
      strip.hidden = true;
    };
    const outlines = (boxes, className) => boxes.map((box) => el("div", {
      class: className(box),
      style: {
        left: `${box.x0 * 100}%`, top: `${box.y0 * 100}%`,
        width: `${(box.x1 - box.x0) * 100}%`, height: `${(box.y1 - box.y0) * 100}%`,
      },
    }));
    const light = (one) => {
      // Until the kernel has answered, `marks` and `issue_id` still belong to the previous page.
      const lit = model.get("page") === shown ? model.get("marks").filter((mark) => mark.page === one.page) : [];
      one.marks.replaceChildren(...outlines(lit, (mark) => `ek-mark ek-mark-${mark.style}`));
      const own = model.get("quotes").filter((quote) => quote.page === one.page).flatMap((quote) => quote.boxes);
      one.own.replaceChildren(...outlines(own.map(([, x0, y0, x1, y1]) => ({ x0, y0, x1, y1 })), () => "ek-mark-own"));
      const found = finder.hits.filter((hit) => hit.page === one.page);
      one.hits.replaceChildren(...outlines(found, (hit) => `ek-hit${hit.hit === finder.at ? " ek-hit-now" : ""}`));
    };
    const frames = templateFrames(model, root, send);
    const passage = passages({
      model, root, scroll, leaves, quarters, send, typeOf: (page) => sectionOf(page)?.type,
      onMode: (isOn) => tools.querySelector("[data-do=mark]").setAttribute("aria-pressed", String(isOn)),
    });
    const notDrawn = (page, why) => el("div", { class: "ek-missing", role: "note" },
      el("b", { text: `Page ${page} is not shown here.` }),
      el("p", { text: why.remedy ? `${why.what}.` : why.what }),
      why.remedy ? el("p", { text: why.remedy }) : null,
      why.remedy ? el("button", { text: "Try again", onclick: () => fetchPage(page) }) : null,
      el("small", { text: "This page could not be displayed. It may have content, so it does not count as seen." }));
    const fillLeaf = (one, page) => {
      const why = missing(page);
      const image = why ? null : picture(page)?.image;
      const isSame = one.page === page && one.turner.contains(image || null);
      one.page = page;
      one.node.hidden = page === 0;
      one.node.classList.toggle("ek-sheet-missing", Boolean(why));
      one.number.textContent = isSpread && page ? `page ${page}` : "";
      if (page === 0) { one.turner.replaceChildren(); return; }
      if (why) one.turner.replaceChildren(notDrawn(page, why));
      else if (!image) one.turner.replaceChildren(el("div", { class: "ek-coming", text: "…" }));
      else if (!isSame) one.turner.replaceChildren(image, one.marks, one.hits, one.own);
      light(one);
      frames.place(one, quarters(page));
    };

    let laying = 0;
    const lay = async () => {
      const ticket = ++laying;
      const page = shown;
      const second = isSpread && page > 0 && page < total() ? page + 1 : 0;
      if (!page || !(picture(page) || missing(page))) {
        blank();
        tellWhere();
        if (page) fetchPage(page); // the picture was dropped after it had arrived
        return;
      }
      await Promise.all([page, second].map((one) => picture(one)?.ready));
      if (ticket !== laying) return;
      const isNew = root.dataset.page !== String(page);
      fillLeaf(leaves[0], page);
      fillLeaf(leaves[1], second);
      size();
      root.dataset.page = page;
      tellWhere();
      drawStrip();
      drawCurrent();
      const place = paper.querySelector(finder.isTurning ? ".ek-hit-now" : ".ek-mark");
      if (model.get("page") === page) finder.isTurning = false; // if not, the page is laid out once more
      if (place) bringIntoView(place, isNew);
      else if (isNew) scroll.scrollTo({ top: 0, left: isSpread ? 0 : scroll.scrollLeft });
      tellPainted();
      pump();
    };
    const bringIntoView = (place, isNew) => {
      const [box, view] = [place.getBoundingClientRect(), scroll.getBoundingClientRect()];
      const isInside = box.top >= view.top && box.bottom <= view.bottom && box.left >= view.left && box.right <= view.right;
      if (isInside && !isNew) return; // the page does not jump under the reader's eyes
      scroll.scrollTop += box.top + box.height / 2 - view.top - view.height / 2;
      if (box.left < view.left || box.right > view.right) {
        scroll.scrollLeft += box.left + box.width / 2 - view.left - view.width / 2;
      }
    };

    // A page counts as seen only when it has been on screen for a moment, not when it was requested.
    let painting = 0;
    const isInView = (one) => {
      if (!one.page || missing(one.page) || !one.turner.contains(picture(one.page)?.image || null)) return false;
      if (picture(one.page).isBroken) return false;
      const [box, view] = [one.node.getBoundingClientRect(), scroll.getBoundingClientRect()];
      const across = Math.min(box.right, view.right) - Math.max(box.left, view.left);
      const down = Math.min(box.bottom, view.bottom) - Math.max(box.top, view.top);
      return across >= 0.4 * Math.min(box.width, view.width) && down >= Math.min(box.height, view.height) / 4;
    };
    const isSeen = (box) => {
      const view = scroll.getBoundingClientRect();
      return box.bottom > view.top && box.top < view.bottom && box.right > view.left && box.left < view.right;
    };
    const isLightInView = (one) => {
      const lit = [...one.marks.children];
      return lit.length === 0 || lit.some((mark) => isSeen(mark.getBoundingClientRect()));
    };
    const tellSeen = (page, issue) => {
      if (page === shown) root.dataset.painted = `${token()}:${page}`;
      say(model, { action: "painted", token: token(), page, issue });
      root.dispatchEvent(new CustomEvent("ek-painted", { bubbles: true, detail: { page, issue, token: token() } }));
      markSeen(page);
    };
    // Only pages on screen carry their words as text; they are laid over the picture once it is painted.
    const layWords = () => leaves.filter((one) => one.page && one.own.parentNode).forEach((one) => {
      const { image, lines } = picture(one.page) || {};
      if (!image || !lines || !one.turner.contains(image)) return;
      if (one.turner.querySelector(".ek-text")?.dataset.page === String(one.page)) return;
      one.turner.querySelector(".ek-text")?.remove();
      one.own.after(textLayer(one.page, lines, image.naturalHeight / image.naturalWidth));
    });
    const tellPainted = () => {
      const ticket = ++painting;
      const [page, opened, version] = [shown, model.get("issue_id"), token()]; // the state when the page was painted
      requestAnimationFrame(() => setTimeout(() => {
        layWords();
        if (ticket !== painting || document.hidden || !contact.hidden || !compare.hidden || seam.isOpen() || model.get("page") !== page) return;
        if (!scroll.checkVisibility({ visibilityProperty: true })) return; // another tab is in front
        if (version !== token()) return;
        for (const one of leaves.filter(isInView)) {
          tellSeen(one.page, isLightInView(one) ? opened : "");
        }
        // A page without a picture does not count as seen, but an expert who was told so may still decide.
        if (missing(page)) root.dataset.told = `${version}:${page}`;
      }, 150));
    };
    const again = () => { if (!document.hidden) tellPainted(); };

    // ---------------------------------------------------------------------------------------------- pictures ahead

    // One request at a time, so that a press never waits for more than one; the nearest pages come first.
    let lane = null; // {kind, pages, since}
    const around = () => [
      ...(isSpread ? [target + 1] : []), target + direction, target - direction, ...(isSpread ? [target + 2, target + 3] : []),
    ];
    const wishes = {
      page: () => {
        if (!asking) return [...seam.wants(), ...around()];
        return asking.page === target ? around().slice(0, 1) : []; // the next page is rendered while the requested one is painted
      },
      preview: () => (contact.hidden ? [] : [...inSight.preview]),
      thumbnail: () => [...inSight.thumbnail],
    };
    let waiting = 0;
    const later = () => { clearTimeout(waiting); waiting = setTimeout(pump, CALM); };
    const pump = () => {
      if (model.get("note") || !target || (lane && Date.now() - lane.since < PATIENCE)) return;
      for (const [kind, wish] of Object.entries(wishes)) {
        if (kind !== "page" && (asking || Date.now() - leafed < CALM)) { later(); return; }
        const pages = wish().filter((page) => page >= 1 && page <= total() && !pictures[kind].has(page) && !missing(page))
          .sort((a, b) => (kind === "page" ? 0 : a - b)).slice(0, kind === "page" ? 1 : AT_ONCE);
        if (pages.length) { order(kind, pages); return; }
      }
    };
    const order = (kind, wanted) => {
      lane = { kind, pages: new Set(wanted), since: Date.now() };
      if (kind === "thumbnail") say(model, { action: "thumbnails", token: token(), pages: wanted });
      else say(model, { action: "previews", token: token(), kind, pages: wanted });
    };
    const fetchPage = (page) => order("page", [page]);

    onArrival = (kind, page) => {
      if (lane?.kind === kind && lane.pages.delete(page) && lane.pages.size === 0) lane = null;
      if (kind === "thumbnail") dress(thumbs.get(page)?.node, pictures.thumbnail.get(page));
      if (kind === "preview") dress(cards.get(page), pictures.preview.get(page));
      if (kind === "page" && page === asking?.page && page === target) shown = page; // the marks arrive later
      if (kind === "page" && page === model.get("strips")[shown - 1]?.other) drawCompare();
      if (kind === "page") seam.draw();
      if (kind === "page" && [shown, isSpread ? shown + 1 : 0].includes(page)) {
        const one = leaves.find((other) => other.page === page);
        if (!one || !one.turner.contains(picture(page)?.image || null)) lay();
      }
      pump();
    };
    const dress = (node, one) => {
      if (node && one && !node.querySelector("img")) node.prepend(el("img", { src: one.url, alt: "" }));
    };
    const inSight = { thumbnail: new Set(), preview: new Set() };
    const watcher = (kind, frame) => new IntersectionObserver((entries) => {
      for (const entry of entries) {
        inSight[kind][entry.isIntersecting ? "add" : "delete"](Number(entry.target.dataset.page));
      }
      pump();
    }, { root: frame, rootMargin: "200px" });
    const watchRibbon = watcher("thumbnail", ribbon);

    // ---------------------------------------------------------------------------------------------- whose page it is

    const cut = (page, box) => {
      const image = picture(page)?.image;
      if (!image?.naturalWidth || !isBox(box)) return null;
      const pad = 0.006;
      const [x0, y0] = [Math.max(box[0] - pad, 0), Math.max(box[1] - pad, 0)];
      const [x1, y1] = [Math.min(box[2] + pad, 1), Math.min(box[3] + pad, 1)];
      const [across, down] = [(x1 - x0) * image.naturalWidth, (y1 - y0) * image.naturalHeight];
      const by = Math.min(1, 340 / across, 90 / down);
      return el("div", {
        class: "ek-cut", role: "img", "aria-label": "as it is on the page",
        style: {
          width: `${across * by}px`, height: `${down * by}px`, backgroundImage: `url("${image.src}")`,
          backgroundSize: `${image.naturalWidth * by}px ${image.naturalHeight * by}px`,
          backgroundPosition: `${-x0 * image.naturalWidth * by}px ${-y0 * image.naturalHeight * by}px`,
        },
      });
    };
    const drawStrip = () => {
      const whose = model.get("strips")[shown - 1];
      strip.hidden = !whose;
      if (!whose) return;
      strip.className = `ek-strip ek-strip-${whose.relation}`;
      const hasDifferences = Boolean(whose.differences);
      strip.classList.toggle("ek-strip-opens", hasDifferences);
      if (hasDifferences) strip.dataset.key = "w"; else delete strip.dataset.key;
      fill(strip, el("span", { text: whose.text }), whose.words ? el("b", { text: ` · ${whose.words}` }) : null,
        hasDifferences ? kbd("w") : null);
      fill(parts, whose.parts.length ? whose.parts.map((part) => el("div", { class: "ek-part" },
        el("span", { class: "ek-muted", text: part.label }), el("span", { class: "ek-words", text: part.value }), cut(shown, part.box)))
        : el("span", { class: "ek-muted", text: "Neither a name nor a date of birth was read on this page." }));
    };

    // ---------------------------------------------------------------------------------------------- two patients?

    const compare = el("div", { class: "ek-compare", role: "dialog", "aria-modal": "true", "aria-labelledby": "ek-compare-title", hidden: true });
    root.append(compare);
    const separate = (page, rest) => {
      closeCompare();
      send("separate", { page, rest });
    };
    const compareColumn = (whose, side) => {
      const page = side ? shown : whose.other;
      const image = picture(page);
      const range = model.get("can_separate") && whose.ranges ? whose.ranges[side] : null;
      const boxes = whose.differences.map((difference) => difference.boxes[side]).filter(isBox)
        .map(([x0, y0, x1, y1]) => ({ x0, y0, x1, y1 }));
      return el("section", { "aria-label": `page ${page}` },
        el("header", {}, el("h3", { text: side ? `Page ${page}, on screen` : `Page ${page}` }), el("span", { class: "ek-grow" }),
          range ? el("button", { class: side ? "ek-primary" : "", "data-side": side, onclick: () => separate(page, false) },
            el("span", { text: `${sentence(pages(...range))} ${range[0] === range[1] ? "belongs" : "belong"} to another patient` }),
            side ? kbd("a") : null) : null),
        el("dl", {}, whose.differences.map((difference) => [
          el("dt", { text: sentence(difference.fact) }), el("dd", { class: "ek-words", text: difference.values[side] })])),
        el("div", { class: "ek-compare-scroll", tabindex: 0, "aria-label": `picture of page ${page}` },
          image ? el("div", { class: "ek-compare-page" }, el("img", { src: image.url, alt: `page ${page}`, draggable: false }),
            outlines(boxes, () => "ek-mark ek-mark-differs"))
            : el("p", { class: "ek-muted", text: missing(page) ? `Page ${page} cannot be shown.` : "…" })));
    };
    const drawCompare = () => {
      const whose = model.get("strips")[shown - 1];
      if (compare.hidden || !whose?.differences) return;
      const facts = whose.differences.map((difference) => difference.fact);
      const held = compare.contains(document.activeElement) ? document.activeElement.dataset.side : null;
      fill(compare,
        el("header", {}, el("div", {}, el("h2", { id: "ek-compare-title", text: `Is page ${shown} about the same patient as page ${whose.other}?` }),
          el("p", { class: "ek-muted", text: `${sentence(words(facts))} ${facts.length === 1 ? "differs" : "differ"}: boxed on both pages.` })),
        el("span", { class: "ek-grow" }),
        el("button", { "data-side": "close", onclick: () => closeCompare() }, el("span", { text: "Close" }), kbd("Esc"))),
        el("div", { class: "ek-compare-pages" }, compareColumn(whose, 0), compareColumn(whose, 1)));
      compare.querySelectorAll(".ek-compare-scroll").forEach((frame) => {
        const mark = frame.querySelector(".ek-mark");
        if (mark) frame.scrollTop = mark.offsetTop - 60;
      });
      (compare.querySelector(`[data-side="${held || 1}"]`) || compare.querySelector("[data-side=close]")).focus({ preventScroll: true });
    };
    const openCompare = () => {
      const whose = model.get("strips")[shown - 1];
      if (!whose?.differences) return;
      unpaint();
      compare.hidden = false;
      drawCompare();
      if (!picture(whose.other) && !missing(whose.other)) fetchPage(whose.other);
    };
    const closeCompare = () => {
      if (compare.hidden) return;
      compare.hidden = true;
      compare.replaceChildren();
      scroll.focus({ preventScroll: true });
      tellPainted();
    };
    compare.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "a" && !event.repeat) compare.querySelector('[data-side="1"]')?.click();
      if (event.key === "Escape" || event.key === "w") closeCompare();
      if (event.key === "Tab") { // the focus stays in the dialog
        const stops = [...compare.querySelectorAll("button, [tabindex]")];
        const at = stops.indexOf(document.activeElement) + (event.shiftKey ? -1 : 1);
        stops[(at + stops.length) % stops.length].focus();
      }
      if (["a", "w", "Escape", "Tab"].includes(event.key)) { event.preventDefault(); event.stopPropagation(); }
    });

    let leftAlone = ""; // the offer that the expert declined
    const drawOffer = () => {
      const { page, pages: more = [] } = model.get("offer");
      const key = JSON.stringify([token(), page, more]);
      offer.hidden = !more.length || leftAlone === key;
      fill(offer, offer.hidden ? null : [
        el("span", { text: `${plural(more.length, "more page")} ${more.length === 1 ? "names" : "name"} this patient: ${more.join(", ")}.` }),
        el("button", { "data-key": "a", onclick: () => separate(page, true) },
          el("span", { text: more.length === 1 ? "Separate it as well" : "Separate them as well" }), kbd("a")),
        el("button", { text: more.length === 1 ? "Leave it" : "Leave them", onclick: () => { leftAlone = key; drawOffer(); scroll.focus(); } })]);
    };

    // ---------------------------------------------------------------------------------------------- ribbon

    const thumbs = new Map(); // page → {node, dot, said}: built once per file, moved when segments change
    const sections = new Map(); // first page → {node, …}
    let seen = new Set();
    const sectionOf = (page) => model.get("segments").find((one) => one.start <= page && page <= one.end);
    const about = (page) => {
      const segment = sectionOf(page);
      return [
        `page ${page}`, segment ? drawnType(segment.type) : null, model.get("statuses")[page - 1],
        model.get("missing")[page] ? "cannot be drawn" : null,
        model.get("evidence").includes(page) ? "evidence here" : null, seen.has(page) ? "seen" : "not seen yet",
      ].filter(Boolean);
    };
    const drawThumb = (page) => {
      const one = thumbs.get(page);
      const label = about(page).join(", ");
      if (!one || one.said === label) return;
      one.said = label;
      one.node.setAttribute("aria-label", label);
      one.node.classList.toggle("ek-thumb-seen", seen.has(page));
      one.node.classList.toggle("ek-thumb-evidence", model.get("evidence").includes(page));
      one.status.textContent = model.get("missing")[page] ? "cannot be drawn" : model.get("statuses")[page - 1] || "";
    };
    const makeThumbs = () => {
      watchRibbon.disconnect();
      inSight.thumbnail.clear();
      thumbs.clear();
      sections.clear();
      ribbon.replaceChildren();
      seen = new Set(model.get("seen"));
      for (let page = 1; page <= total(); page += 1) {
        const status = el("em");
        const node = el("button", { class: "ek-thumb", "data-page": page, onclick: () => go(page) },
          el("i", { "aria-hidden": "true" }), status, el("span", { text: page }));
        thumbs.set(page, { node, status, said: "" });
        dress(node, pictures.thumbnail.get(page));
        watchRibbon.observe(node);
      }
    };
    const drawSegments = () => {
      const wanted = model.get("segments");
      const starts = new Set(wanted.map((one) => one.start));
      for (const [start, one] of sections) if (!starts.has(start)) { one.node.remove(); sections.delete(start); }
      let before = null;
      for (const segment of wanted) {
        let one = sections.get(segment.start);
        if (!one) {
          one = { head: el("header"), thumbs: el("div", { class: "ek-thumbs" }), end: 0, said: "" };
          one.body = el("section", {}, one.head, one.thumbs);
          one.node = el("div", { class: "ek-document" }, el("div", { class: "ek-divider", text: segment.divider || "new document" }), one.body);
          sections.set(segment.start, one);
        }
        if (one.node.parentNode !== ribbon || one.node.previousSibling !== before) ribbon.insertBefore(one.node, before ? before.nextSibling : ribbon.firstChild);
        before = one.node;
        drawSegment(one, segment);
      }
    };
    const drawSegment = (one, segment) => {
      if (one.end !== segment.end || one.thumbs.childElementCount !== segment.end - segment.start + 1) {
        one.end = segment.end;
        const own = [];
        for (let page = segment.start; page <= segment.end; page += 1) if (thumbs.has(page)) own.push(thumbs.get(page).node);
        one.thumbs.replaceChildren(...own);
      }
      const flags = (segment.flags || []).map((flag) => FLAGS[flag] || flag);
      const length = segment.end - segment.start + 1;
      const looked = [...seen].filter((page) => segment.start <= page && page <= segment.end).length;
      const said = JSON.stringify([segment.start, segment.end, segment.type, flags, looked]);
      if (one.said === said) return;
      one.said = said;
      one.body.className = `ek-segment ${typeClass(segment.type)}`;
      fill(one.head, el("b", { text: drawnType(segment.type), title: drawnType(segment.type) }),
        el("span", { text: segment.start === segment.end ? `${segment.start}` : `${segment.start}–${segment.end}` }),
        el("span", { class: looked === length ? "ek-seen" : "ek-muted", text: looked === length ? "✓ seen" : looked ? `${looked} of ${length} seen` : "not seen yet" }),
        flags.length ? el("div", { class: "ek-flags" }, flags.map((flag) => el("span", { text: flag }))) : null);
      for (let page = segment.start; page <= segment.end; page += 1) drawThumb(page);
    };
    const drawRibbon = () => {
      drawSegments();
      drawCurrent();
      if (!contact.hidden) drawContact();
    };
    let current = null;
    const drawCurrent = () => {
      const now = thumbs.get(shown)?.node || null;
      if (current === now) return;
      if (current) { current.classList.remove("ek-current"); current.removeAttribute("aria-current"); }
      current = now;
      if (!now) return;
      now.classList.add("ek-current");
      now.setAttribute("aria-current", "page");
      const [box, view] = [now.getBoundingClientRect(), ribbon.getBoundingClientRect()];
      if (box.top < view.top) ribbon.scrollTop -= view.top - box.top + 40;
      else if (box.bottom > view.bottom) ribbon.scrollTop += box.bottom - view.bottom + 40;
    };
    const markSeen = (page) => {
      if (seen.has(page)) return;
      seen.add(page);
      const segment = sectionOf(page);
      if (segment && sections.has(segment.start)) drawSegment(sections.get(segment.start), segment);
      const saw = cards.get(page)?.parentNode.querySelector(".ek-card-saw");
      if (saw) saw.textContent = "seen";
    };

    const tellAbout = (event) => {
      const section = event.target.closest?.(".ek-segment");
      if (!section) { card.hidden = true; return; }
      const thumb = event.target.closest(".ek-thumb");
      const segment = sectionOf(Number((thumb || section.querySelector(".ek-thumb"))?.dataset.page));
      if (!segment) return;
      const claim = [
        typeof segment.confidence === "number" ? `${Math.round(100 * segment.confidence)} % sure` : null,
        segment.presence || null,
      ].filter(Boolean).join(", ");
      fill(card, el("b", { class: typeClass(segment.type), text: drawnType(segment.type) }),
        el("span", { text: pages(segment.start, segment.end) }),
        segment.is_yours ? el("span", { text: "yours" }) : claim ? el("span", { text: `the program: ${claim}` }) : null,
        (segment.flags || []).length ? el("span", { text: segment.flags.map((flag) => FLAGS[flag] || flag).join(", ") }) : null,
        thumb ? el("span", { class: "ek-muted", text: about(Number(thumb.dataset.page)).filter((_, at) => at !== 1).join(" · ") }) : null);
      card.hidden = false;
      const [box, frame] = [(thumb || section).getBoundingClientRect(), root.getBoundingClientRect()];
      const top = Math.min(box.top - frame.top, frame.height - card.offsetHeight - 8);
      Object.assign(card.style, { left: `${ribbon.offsetWidth + 6}px`, top: `${Math.max(top, 8)}px` });
    };
    const hideAbout = () => { card.hidden = true; };
    ribbon.addEventListener("pointerover", tellAbout);
    ribbon.addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) tellAbout(event); });
    ribbon.addEventListener("pointerleave", hideAbout);
    ribbon.addEventListener("focusout", hideAbout);
    ribbon.addEventListener("scroll", hideAbout, { passive: true });

    // ---------------------------------------------------------------------------------------------- find

    const finder = { hits: [], at: 0, count: 0, isTurning: false };
    const findText = el("input", {
      type: "text", "aria-label": "find in the file", placeholder: "Find in the file",
      oninput: () => { clearTimeout(typing); typing = setTimeout(look, 200); },
      onkeydown: (event) => {
        if (event.key === "Enter") {
          event.stopPropagation();
          event.preventDefault();
          if (findText.value.trim() !== model.get("found_for")) look();
          else step(event.shiftKey ? -1 : 1);
        }
        if (event.key === "Escape") { event.stopPropagation(); closeFind(); }
      },
    });
    const findCount = el("span", { class: "ek-find-count", role: "status" });
    const findBar = el("div", { class: "ek-find", role: "search", hidden: true }, findText, findCount,
      el("button", { text: "‹", "aria-label": "previous hit", onclick: () => step(-1) }),
      el("button", { text: "›", "aria-label": "next hit", onclick: () => step(1) }),
      el("button", { text: "×", "aria-label": "close the search", onclick: () => closeFind() }));
    view.append(findBar);
    let typing = 0;
    const look = () => {
      clearTimeout(typing);
      const text = findText.value.trim();
      if (text) say(model, { action: "find", token: token(), text });
      else take([]);
    };
    const take = (hits) => {
      finder.hits = hits;
      finder.count = hits.length ? hits[hits.length - 1].hit + 1 : 0;
      const ahead = hits.find((hit) => hit.page >= shown);
      finder.at = ahead ? ahead.hit : 0;
      tellFound();
    };
    const tellFound = () => {
      const text = findText.value.trim();
      findCount.textContent = !text ? "" : finder.count ? `${finder.at + 1} of ${finder.count}` : "not found";
      leaves.forEach(light);
      const hit = finder.hits.find((one) => one.hit === finder.at);
      if (!hit || findBar.hidden) return;
      if (hit.page !== target) {
        finder.isTurning = true;
        go(hit.page);
        return;
      }
      const place = paper.querySelector(".ek-hit-now");
      if (place) bringIntoView(place);
    };
    const step = (by) => {
      if (!finder.count) return;
      finder.at = (finder.at + by + finder.count) % finder.count;
      tellFound();
    };
    const closeFind = () => {
      findBar.hidden = true;
      take([]);
      scroll.focus();
    };
    const openFind = () => {
      findBar.hidden = false;
      findText.focus();
      findText.select();
      if (findText.value.trim()) look();
    };
    const found = () => {
      if (findBar.hidden || model.get("found_for") !== findText.value.trim()) return; // the text has changed since
      take(model.get("hits"));
    };

    // ---------------------------------------------------------------------------------------------- all pages

    const cards = new Map(); // page → the element of its preview
    const grid = el("div", { class: "ek-contact-grid" });
    let [anchor, head] = [0, 0]; // the first and last selected page; without an anchor, the document of the page is meant
    const selection = () => (anchor ? [Math.min(anchor, head), Math.max(anchor, head)] : null);
    const hint = el("span", { class: "ek-muted", role: "status" });
    const setType = (type) => {
      const [first, last] = selection() || [head, head];
      if (model.get("can_separate")) send(anchor ? "type_pages" : "type", { first, last, page: head, type });
    };
    const split = () => { if (model.get("can_separate") && head > 1) send("split", { page: head }); };
    const choices = [...shareTypes(model).map(({ type, key }) => [key, type, () => setType(type)]), ["s", "New document, or join", split]];
    const byKey = Object.fromEntries(choices.filter(([key]) => key).map(([key, , action]) => [key, action]));
    const deedsOfSelection = el("span", { class: "ek-row", role: "group", "aria-label": "what to do with the selected pages" },
      choices.map(([key, text, onclick]) => el("button", { onclick }, text, key ? kbd(key) : null)));
    const contact = el("div", { class: "ek-contact", role: "dialog", "aria-label": "all pages", hidden: true },
      el("header", {}, el("b", { text: "All pages" }), deedsOfSelection, hint,
        el("span", { class: "ek-grow" }), el("button", { "aria-label": "close", onclick: () => closeContact() }, el("span", { text: "Close" }), kbd("Esc"))),
      grid);
    root.append(contact);
    const watchContact = watcher("preview", contact);
    let contactSays = "";
    const drawContact = () => {
      const says = JSON.stringify([token(), model.get("segments")]);
      if (says === contactSays) return;
      contactSays = says;
      watchContact.disconnect();
      inSight.preview.clear();
      cards.clear();
      fill(grid, model.get("segments").map((segment, at) => [
        el("div", { class: `ek-contact-head ${typeClass(segment.type)}` },
          at ? el("span", { class: "ek-muted", text: "new document" }) : null,
          el("b", { text: drawnType(segment.type) }), el("span", { text: pages(segment.start, segment.end) }),
          (segment.flags || []).map((flag) => el("span", { class: "ek-flag", text: FLAGS[flag] || flag }))),
        ...Array.from({ length: segment.end - segment.start + 1 }, (_, i) => contactCard(segment.start + i, segment.type)),
      ]));
      cards.forEach((shot) => watchContact.observe(shot));
      deedsOfSelection.hidden = !model.get("can_separate");
      if (head) focusCard(head, Boolean(anchor)); // cards are new: the focus returns
    };
    const contactCard = (page, type) => {
      const heading = model.get("headings")[page - 1];
      const status = model.get("missing")[page] ? "cannot be drawn" : model.get("statuses")[page - 1];
      const shot = el("span", { class: "ek-shot", "data-page": page });
      dress(shot, pictures.preview.get(page));
      cards.set(page, shot);
      const node = el("button", {
        class: `ek-card ${typeClass(type)}${page === shown ? " ek-current" : ""}`, "data-page": page,
        "aria-label": `${about(page).join(", ")}${heading ? `: ${heading}` : ""}`, "aria-pressed": "false",
        onclick: (event) => { if (event.shiftKey) focusCard(page, true); else { closeContact(); go(page); } },
      }, shot,
      el("span", { class: "ek-card-line" }, el("b", { text: page }), el("span", { class: "ek-chip", text: drawnType(type) }),
        status ? el("span", { class: "ek-muted", text: status }) : null,
        el("span", { class: "ek-muted ek-card-saw", text: seen.has(page) ? "seen" : "" })),
      el("span", { class: "ek-card-heading", text: heading || "no heading" }));
      return node;
    };
    const focusCard = (page, isRange = false) => {
      anchor = isRange ? anchor || head : 0;
      head = page;
      const [first, last] = selection() || [0, 0];
      grid.querySelectorAll(".ek-card").forEach((node) => node.setAttribute("aria-pressed", String(first <= node.dataset.page && node.dataset.page <= last)));
      hint.textContent = [first ? `${sentence(pages(first, last))} selected` : "arrow keys move, Enter opens", model.get("can_separate") ? "Shift selects several" : null].filter(Boolean).join(" · ");
      const node = grid.querySelector(`.ek-card[data-page="${page}"]`);
      if (node) { node.focus(); node.scrollIntoView({ block: "nearest" }); }
    };
    const vertically = (by, isRange) => {
      const here = grid.querySelector(`.ek-card[data-page="${head}"]`);
      if (!here) return;
      const at = here.getBoundingClientRect();
      const rows = [...grid.querySelectorAll(".ek-card")].map((node) => ({ node, box: node.getBoundingClientRect() }))
        .filter(({ box }) => (by > 0 ? box.top > at.top + 8 : box.top < at.top - 8));
      if (!rows.length) return;
      const row = by > 0 ? Math.min(...rows.map(({ box }) => box.top)) : Math.max(...rows.map(({ box }) => box.top));
      const inRow = rows.filter(({ box }) => Math.abs(box.top - row) < 8);
      inRow.sort((a, b) => Math.abs(a.box.left - at.left) - Math.abs(b.box.left - at.left));
      focusCard(Number(inRow[0].node.dataset.page), isRange);
    };
    const inContact = {
      next: (isRange) => focusCard(Math.min(head + 1, total()), isRange), previous: (isRange) => focusCard(Math.max(head - 1, 1), isRange),
      first: (isRange) => focusCard(1, isRange), last: (isRange) => focusCard(total(), isRange), sheet: () => closeContact(),
    };
    contact.addEventListener("keydown", (event) => {
      if (event.defaultPrevented) return;
      const move = {
        ArrowRight: inContact.next, ArrowLeft: inContact.previous, Home: inContact.first, End: inContact.last,
        ArrowDown: (isRange) => vertically(1, isRange), ArrowUp: (isRange) => vertically(-1, isRange), Escape: inContact.sheet, g: inContact.sheet,
      }[event.key] || (event.repeat ? null : byKey[event.key]);
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      head = Number(event.target.closest(".ek-card")?.dataset.page) || head; // Tab has moved the focus
      move(event.shiftKey);
    });
    const openContact = () => {
      if (!total()) return;
      unpaint();
      contact.hidden = false;
      [anchor, head] = [0, shown];
      drawContact();
      grid.querySelectorAll(".ek-card.ek-current").forEach((node) => node.classList.remove("ek-current"));
      grid.querySelector(`.ek-card[data-page="${shown}"]`)?.classList.add("ek-current");
      focusCard(shown);
    };
    const closeContact = () => {
      if (contact.hidden) return;
      contact.hidden = true;
      inSight.preview.clear();
      scroll.focus({ preventScroll: true });
      tellPainted();
    };

    // ---------------------------------------------------------------------------------------------- boundaries in doubt

    const seam = boundaryStrip({
      model, send, picture, missing, isBox, outlines, tellSeen,
      onDone: () => { drawSeams(); scroll.focus({ preventScroll: true }); tellPainted(); },
    });
    view.append(seam.node);
    const drawSeams = () => {
      seams.hidden = !seam.count();
      fill(seams, el("span", { text: seam.undecided() ? `Boundaries ${seam.undecided()}` : "Boundaries ✓" }), kbd("o"));
    };
    const seamsChanged = () => { seam.draw(); drawSeams(); pump(); };

    // ---------------------------------------------------------------------------------------------- what is pressed

    const deeds = {
      next: () => go(target + 1), previous: () => go(target - 1), first: () => go(1), last: () => go(total()),
      larger: () => scale(1), smaller: () => scale(-1),
      fit: () => { isWhole = zoom === 1 && !isWhole; zoom = 1; rescale(); },
      rotate: () => { if (shown) { turned.set(shown, (quarters(shown) + 1) % 4); rescale(); frames.place(leaves[0], quarters(shown)); } },
      find: () => openFind(), sheet: () => openContact(), appear: () => tellPainted(), mark: () => passage.toggle(),
      spread: () => {
        isSpread = !isSpread;
        spread.setAttribute("aria-pressed", String(isSpread));
        root.classList.toggle("ek-two", isSpread);
        unpaint();
        lay();
      },
    };
    const act = (what) => {
      if (!compare.hidden) { if (what === "sheet") closeCompare(); return; }
      if (what === "leave") { if (contact.hidden) seam.leave(); return; }
      const deed = contact.hidden ? deeds[what] : inContact[what];
      if (deed) deed();
    };
    root.addEventListener("ek-do", (event) => act(event.detail));

    let version = token();
    model.on("change:version", () => {
      if (version === token()) return;
      version = token();
      turned.clear();
      [zoom, isWhole, shown, target, direction, asking, lane] = [1, false, 0, 0, 1, null, null];
      blank();
      tellWhere();
      contact.hidden = compare.hidden = true;
      contactSays = "";
      findText.value = "";
      findBar.hidden = true;
      take([]);
      makeThumbs();
      drawRibbon();
    });
    model.on("change:page", turnedTo);
    model.on("change:page change:doubts change:issue_id change:missing change:can_separate", seamsChanged);
    model.on("change:marks change:issue_id", () => { if (shown && model.get("page") === shown) lay(); });
    model.on("change:frames", () => leaves.forEach((one) => frames.place(one, quarters(one.page))));
    model.on("change:segments", drawRibbon);
    model.on("change:quotes", () => leaves.forEach(light));
    model.on("change:offer change:can_separate", drawOffer);
    model.on("change:hits change:found_for", found);
    // If no page can be shown, the keyboard must not wait for one.
    const noted = () => {
      if (model.get("note")) root.dataset.fault = ""; else delete root.dataset.fault;
      if (!shown && model.get("note")) shown = target = 1;
      lay();
    };
    model.on("change:note", noted);
    model.on("change:missing", () => {
      thumbs.forEach((_, page) => drawThumb(page));
      if (missing(shown) || missing(shown + 1)) lay();
    });
    document.addEventListener("visibilitychange", again);
    let scrolling = 0;
    scroll.addEventListener("scroll", () => { noteCorner(); clearTimeout(scrolling); scrolling = setTimeout(tellPainted, 150); }, { passive: true });
    const resized = new ResizeObserver(sizeInPlace);
    resized.observe(scroll);
    makeThumbs();
    drawRibbon();
    drawOffer();
    turnedTo();
    seamsChanged();
    if (model.get("note")) noted();
    return () => {
      onArrival = () => {};
      target = 0; // no page is asked for
      passage.stop();
      clearTimeout(waiting);
      document.removeEventListener("visibilitychange", again);
      resized.disconnect();
      watchRibbon.disconnect();
      watchContact.disconnect();
    };
  }

  return { initialize, render };
}

export default pane;
