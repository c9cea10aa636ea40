// The packet as a ribbon of pages, and one page large, with what is lit on it.

const KEPT = 8;
const THUMBS_AT_ONCE = 40;
const STEPS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

function render({ model, el: root }) {
  root.classList.add("ek", "ek-pane");
  let zoom = 1;
  const cache = new Map(); // page → object URL, newest last
  const thumbs = new Map(); // page → object URL

  const image = el("img", { class: "ek-page-image", draggable: false, alt: "" });
  const marks = el("div", { class: "ek-marks" });
  const sheet = el("div", { class: "ek-sheet" }, image, marks);
  const scroll = el("div", { class: "ek-scroll", tabindex: 0 }, sheet);
  const counter = el("span", { class: "ek-counter" });
  const note = el("span", { class: "ek-strip" });
  const ribbon = el("nav", { class: "ek-ribbon", "aria-label": "pages" });
  const tools = el("div", { class: "ek-tools" },
    el("button", { text: "‹", "aria-label": "previous page", onclick: () => go(model.get("page") - 1) }), counter,
    el("button", { text: "›", "aria-label": "next page", onclick: () => go(model.get("page") + 1) }),
    el("button", { text: "−", "aria-label": "smaller", onclick: () => scale(-1) }),
    el("button", { text: "Fit", onclick: () => { zoom = 1; size(); } }),
    el("button", { text: "+", "aria-label": "larger", onclick: () => scale(1) }),
    el("span", { class: "ek-grow" }), note);
  root.append(ribbon, el("div", { class: "ek-middle" }, tools, scroll));

  const forget = (map) => { map.forEach((url) => URL.revokeObjectURL(url)); map.clear(); };
  const keep = (page, url) => {
    if (cache.has(page) && cache.get(page) !== url) URL.revokeObjectURL(cache.get(page));
    cache.delete(page);
    cache.set(page, url);
    for (const old of cache.keys()) {
      if (cache.size <= KEPT) break;
      if (old === model.get("page")) continue;
      URL.revokeObjectURL(cache.get(old));
      cache.delete(old);
    }
  };
  const picture = (bytes) => URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));

  const go = (page) => {
    if (page < 1 || page > model.get("total") || page === model.get("page")) return;
    if (cache.has(page)) keep(page, cache.get(page)); // used now: dropped last
    say(model, { action: "page", token: model.get("version"), page, cached: cache.has(page) });
    if (cache.has(page)) show(page, []);
  };
  const scale = (by) => {
    const at = STEPS.findIndex((step) => step >= zoom);
    zoom = STEPS[Math.min(Math.max(at + by, 0), STEPS.length - 1)];
    size();
  };
  const size = () => {
    const fit = Math.min(scroll.clientWidth - 48, 760);
    sheet.style.width = `${Math.max(fit, 240) * zoom}px`;
  };

  // A page counts as seen when it is painted and stays for a moment, not when it was asked for.
  let painted = 0;
  const tellPainted = (page, issue) => {
    const ticket = ++painted;
    const token = model.get("version"); // of the case that is painted now, not of the one that may follow
    requestAnimationFrame(() => setTimeout(() => {
      if (ticket === painted && !document.hidden) say(model, { action: "painted", token, page, issue });
    }, 150));
  };

  // Nothing of another page, or of another patient, may stand beside what is said about this one.
  let asked = 0;
  const blank = () => {
    painted += 1;
    image.removeAttribute("src");
    marks.replaceChildren();
    counter.textContent = "";
    delete root.dataset.page;
  };

  const show = async (page, lit) => {
    const url = cache.get(page);
    if (!url) {
      blank();
      if (page > 0 && asked !== page) { // it was dropped since it was sent
        asked = page;
        say(model, { action: "page", token: model.get("version"), page, cached: false });
      }
      return;
    }
    asked = 0;
    counter.textContent = `Page ${page} of ${model.get("total")}`;
    image.alt = `page ${page}`;
    if (image.src !== url) {
      marks.replaceChildren();
      image.src = url;
      try { await image.decode(); } catch { return; }
      if (model.get("page") !== page) return;
      if (image.src !== url) return;
      size();
    }
    marks.replaceChildren(...lit.map((mark) => el("div", {
      class: `ek-mark ek-mark-${mark.style}`,
      style: {
        left: `${mark.x0 * 100}%`, top: `${mark.y0 * 100}%`,
        width: `${(mark.x1 - mark.x0) * 100}%`, height: `${(mark.y1 - mark.y0) * 100}%`,
      },
    })));
    root.dataset.page = page;
    if (marks.firstChild) marks.firstChild.scrollIntoView({ block: "center", inline: "nearest" });
    else scroll.scrollTop = 0;
    tellPainted(page, model.get("issue_id"));
  };
  const refresh = () => show(model.get("page"), model.get("marks").filter((mark) => mark.page === model.get("page")));

  const wanted = new IntersectionObserver((entries) => {
    const visible = entries.filter((entry) => entry.isIntersecting).map((entry) => Number(entry.target.dataset.page));
    const missing = visible.filter((page) => !thumbs.has(page));
    for (let at = 0; at < missing.length; at += THUMBS_AT_ONCE) {
      say(model, { action: "thumbnails", token: model.get("version"), pages: missing.slice(at, at + THUMBS_AT_ONCE) });
    }
  }, { root: ribbon, rootMargin: "200px" });

  const drawRibbon = () => {
    wanted.disconnect();
    const current = model.get("page");
    ribbon.replaceChildren(...model.get("segments").map((segment) =>
      el("section", { class: `ek-segment ${typeClass(segment.type)}` },
        el("header", {}, el("b", { text: typeName(segment.type) }),
          el("span", { text: segment.start === segment.end ? `${segment.start}` : `${segment.start}–${segment.end}` })),
        el("div", { class: "ek-thumbs" }, Array.from({ length: segment.end - segment.start + 1 }, (_, i) => {
          const page = segment.start + i;
          const thumb = el("button", {
            class: `ek-thumb${page === current ? " ek-current" : ""}`, "data-page": page, title: `page ${page}`,
            "aria-label": `page ${page}, ${typeName(segment.type)}`, "aria-current": page === current ? "page" : null,
            onclick: () => go(page),
          }, thumbs.has(page) ? el("img", { src: thumbs.get(page), alt: "" }) : null, el("span", { text: page }));
          wanted.observe(thumb);
          return thumb;
        })))));
  };
  const drawCurrent = () => {
    ribbon.querySelectorAll(".ek-thumb").forEach((thumb) => {
      const here = Number(thumb.dataset.page) === model.get("page");
      thumb.classList.toggle("ek-current", here);
      if (here) { thumb.setAttribute("aria-current", "page"); thumb.scrollIntoView({ block: "nearest" }); }
      else thumb.removeAttribute("aria-current");
    });
  };

  const received = (message, buffers) => {
    if (message.version !== model.get("version")) return;
    if (message.kind === "page") {
      if (!cache.has(message.page)) keep(message.page, picture(buffers[0]));
      if (message.page === model.get("page") && root.dataset.page !== String(message.page)) refresh();
    }
    if (message.kind === "thumbnail") {
      thumbs.set(message.page, picture(buffers[0]));
      const thumb = ribbon.querySelector(`.ek-thumb[data-page="${message.page}"]`);
      if (thumb && !thumb.querySelector("img")) thumb.prepend(el("img", { src: thumbs.get(message.page), alt: "" }));
    }
  };

  let version = model.get("version");
  model.on("change:version", () => {
    if (version === model.get("version")) return;
    version = model.get("version");
    forget(cache);
    forget(thumbs);
    blank();
    asked = 0;
    zoom = 1;
    drawRibbon();
  });
  model.on("change:marks change:page", refresh);
  model.on("change:page", drawCurrent);
  model.on("change:segments", drawRibbon);
  model.on("change:note", () => { note.textContent = model.get("note"); });
  model.on("msg:custom", received);
  const resized = new ResizeObserver(size);
  resized.observe(scroll);
  drawRibbon();
  refresh();
  note.textContent = model.get("note");
  return () => { resized.disconnect(); wanted.disconnect(); forget(cache); forget(thumbs); };
}

export default { render };
