// The bar on top, and the pulse: it tells the expert within seconds when nothing can be saved any more.

const PING_EVERY = 2000;
const LOST_AFTER = 7000;

const RELEASED_WITHIN = 1500;
const newId = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`);

// A reload keeps the tab's own storage, but a duplicated tab has a copy of it: the lock, which goes with the page that
// held it, tells the two apart. A page that was just reloaded may hold it for a moment longer.
const tabId = async () => {
  const known = sessionStorage.getItem("evalkit-tab");
  if (known && (await held(known, RELEASED_WITHIN))) return known;
  const id = newId();
  sessionStorage.setItem("evalkit-tab", id);
  if (known) sessionStorage.removeItem("evalkit-case"); // the other tab's
  await held(id, RELEASED_WITHIN);
  return id;
};
const held = (id, patience) => new Promise((resolve) => {
  if (!navigator.locks) { resolve(true); return; } // plain HTTP from another machine: a tab is what its storage says
  const waited = AbortSignal.timeout(patience);
  navigator.locks.request(`evalkit-tab-${id}`, { signal: waited }, () => {
    resolve(true);
    return new Promise(() => {}); // until the page goes
  }).catch(() => resolve(false));
});
const tab = tabId();

function render({ model, el: root }) {
  root.classList.add("ek", "ek-bar");
  let answered = Date.now();
  let active = 0;
  let lastInput = Date.now();
  const touched = () => { lastInput = Date.now(); };
  const events = ["pointerdown", "pointermove", "keydown", "wheel"];
  events.forEach((name) => document.addEventListener(name, touched, { passive: true }));

  const overlay = el("div", { class: "ek ek-lost", role: "alertdialog", "aria-live": "assertive", hidden: true },
    el("div", { class: "ek-lost-card" },
      el("h2", { text: "The connection is lost." }),
      el("p", { text: "What was shown as saved is saved. Reload the page to go on where you were." }),
      el("button", { class: "ek-primary", text: "Reload", onclick: () => location.reload() })));
  document.body.append(overlay);
  const lost = () => { overlay.hidden = false; };
  document.addEventListener("evalkit-lost", lost);

  const draw = () => {
    const done = model.get("done");
    const total = model.get("total");
    const title = model.get("title");
    fill(root,
      el("span", { class: "ek-brand", text: "evalkit" }),
      title
        ? el("span", { class: "ek-crumbs" },
          el("button", { class: "ek-link", text: "Queue", onclick: () => say(model, { action: "queue" }) }), " › ",
          el("b", { text: title }), el("span", { class: "ek-muted", text: ` · ${model.get("subtitle")}` }))
        : el("span", { class: "ek-crumbs" }, el("b", { text: "Queue" })),
      el("span", { class: "ek-grow" }),
      model.get("notice") ? el("span", { class: "ek-notice", role: "status", text: model.get("notice") }) : null,
      el("span", { class: "ek-pill", text: `${done} done today` }),
      el("progress", { max: Math.max(done + total, 1), value: done, "aria-label": "cases done today" }),
      el("span", { class: "ek-pill", text: model.get("reviewer") }),
      model.get("can_log_out") ? el("a", { class: "ek-link", href: "/logout", text: "Log out" }) : null,
    );
  };

  const leave = () => say(model, { action: "leave" });
  window.addEventListener("pagehide", leave);
  const remember = () => {
    if (model.get("case_id")) sessionStorage.setItem("evalkit-case", model.get("case_id"));
    else if (model.get("is_ready")) sessionStorage.removeItem("evalkit-case");
  };
  let id = null;
  const heard = (message) => {
    if (message.kind !== "pong") return;
    answered = Date.now();
    if (message.tab === id) overlay.hidden = true;
    else lost(); // another kernel answers: it does not know what this page shows
  };
  const pulse = setInterval(() => {
    if (Date.now() - lastInput < 60000 && !document.hidden) active += PING_EVERY / 1000;
    if (id) say(model, { action: "ping", tab: id, active });
    if (Date.now() - answered > LOST_AFTER) lost();
  }, PING_EVERY);

  model.on("msg:custom", heard);
  model.on("change", draw);
  model.on("change:case_id change:is_ready", remember);
  draw();
  tab.then((mine) => {
    id = mine;
    say(model, { action: "hello", tab: id, case: sessionStorage.getItem("evalkit-case") });
  });
  return () => {
    clearInterval(pulse);
    events.forEach((name) => document.removeEventListener(name, touched));
    window.removeEventListener("pagehide", leave);
    document.removeEventListener("evalkit-lost", lost);
    overlay.remove();
  };
}

export default { render };
