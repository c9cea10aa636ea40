// The bar on top, the keyboard, and the heartbeat, which detects within seconds that the connection is lost.

const PING_EVERY = 2000;
const LOST_AFTER = 7000;

const RELEASED_WITHIN = 1500;
const served = () => JSON.parse(document.getElementById("jupyter-config-data").textContent);
const newId = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`);

// A reload keeps the tab's session storage, but a duplicated tab gets a copy of it. The lock, which is released when its
// page closes, distinguishes the two cases; after a reload, the old page may hold it for a moment longer.
const tabId = async () => {
  const known = sessionStorage.getItem("evalkit-tab");
  if (known && (await held(known, RELEASED_WITHIN))) return known;
  const id = newId();
  sessionStorage.setItem("evalkit-tab", id);
  if (known) sessionStorage.removeItem("evalkit-case"); // in a notebook: the stored case belongs to the other tab
  await held(id, RELEASED_WITHIN);
  return id;
};
const held = (id, patience) => new Promise((resolve) => {
  if (!navigator.locks) { resolve(true); return; } // no locks over plain HTTP from another machine: rely on the stored id alone
  const waited = AbortSignal.timeout(patience);
  navigator.locks.request(`evalkit-tab-${id}`, { signal: waited }, () => {
    resolve(true);
    return new Promise(() => {}); // hold the lock until the page closes
  }).catch(() => resolve(false));
});
// The ids of this page's tabs: a notebook cell that is run again goes on with the tab of the screen that it replaces.
const ownIds = (globalThis.evalkitTabs ??= new Set());
let tab = null;

// Where the page keeps which case is open, so that a reload opens it again. Under `evalkit review` each case has an address,
// so that Back and Forward work and a link can be sent; a notebook's address is not ours.
const PLACE_IN_URL = {
  get: () => new URLSearchParams(location.search).get("case"),
  set: (address, isReplaced) => {
    if ((PLACE_IN_URL.get() || "") === address) return;
    const url = address ? `${location.pathname}?case=${address}` : location.pathname;
    if (isReplaced) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  },
};
const PLACE_IN_TAB = {
  get: () => sessionStorage.getItem("evalkit-case"),
  set: (address) => sessionStorage.setItem("evalkit-case", address),
};

const TYPE_KEYS = "The document on screen"; // the group of keys to which those of a site's own types belong
const KEYS = [
  ["Decide", [
    ["v", "Validate, or approve, and open the next case"], ["Ctrl+Enter", "Submit what you changed, or your own answer"],
    ["d", "Defer, with a reason"], ["e", "Submit and ask a second expert, with a reason"], ["q", "Cannot tell, or reject a template, with a reason"],
    ["k  l", "If the program's answer differs from your blind answer: keep yours, look again"],
    ["u", "Undo the last change; without changes, reopen the case submitted last"], ["h", "Back to the queue"],
    ["Shift+G", "Guidelines of your organisation, and what the types of documents mean"],
  ]],
  ["Where documents begin", [["y  n", "A document begins here, or the document goes on; then the next doubt"], ["o", "Show the next doubt, or the one on this page"], ["Esc", "Show the whole page"]]],
  [TYPE_KEYS, [
    ["1 – 5", "Set its type: Clinical Note, Pathology, Genomic, Radiology, Other"], ["s", "Start a new document on this page, or join it to the one before"],
    ["[ or ,", "It starts on this page"], ["] or .", "It ends on this page"], ["Shift+P", "Flag as another patient's"], ["Shift+D", "Flag as a duplicate"], ["Shift+O", "Flag as out of order"],
    ["n", "Write a note on the issue, the document or the whole case"],
  ]],
  ["Issues", [["j  k", "Next, previous issue"], ["c", "First answer: change what the program had"], ["x", "Second answer: the program is right"], ["p", "Accept the offered correction"], ["Shift+E", "Show everything, in a case that asks only about its doubts"]]],
  ["Fields of a form or report", [
    ["j  k", "Next, previous field"], ["i", "Next field that you must look at"], ["Enter", "Type the value; Enter keeps it (twice, if it is written in another form), Esc leaves it as it was"],
    ["y", "Found, with the value that was read"], ["m", "Not present on the page"], ["a", "Ambiguous"], ["+", "Add an entry that the program missed"],
    ["PageUp  PageDown", "Previous form, next form"],
  ]],
  ["A template that reads statements", [
    ["t", "Select an edge; Tab selects the next one"], ["← → ↑ ↓", "Move the selected edge; with Shift in larger steps; Esc deselects it"],
    ["1 2 3 4", "Show issues, rows, unread lines, or the template's settings"], ["j  k", "Next, previous item of the list"],
    ["i", "Next issue that you must look at"], ["a", "Add a box to a page that has none"], ["w", "Say why sums that do not add up may be approved"],
    ["[  ]", "Of two ways to read the statement, the left or the right is right"],
  ]],
  ["Pages", [
    ["←  →", "Previous, next page"], ["Home  End", "First, last page"], ["PageUp  PageDown", "Start of this or the previous document, of the next document"],
    ["+  −  0", "Larger, smaller, fit"], ["r", "Rotate the page"], ["b", "Two pages side by side"], ["w", "Compare the patient details of two pages"], ["f", "Find"], ["g", "All pages: Shift selects several, the key of a type sets it, s starts a document"],
    ["z", "Mark a passage: arrow keys select words, with Shift more; the mouse draws a box. Or select with the mouse, Alt+drag for a box"],
  ]],
];

// On a narrow screen, tabs choose which of the three parts are in front. The others keep their size and their keys.
const TABS = { page: ["Page", ".ek-middle"], case: ["Case", ".ek-right"], documents: ["Documents", ".ek-documents"] };
const LIGHTING = ["i", "j", "k"]; // keys that light another place on the page
const isInFront = (node) => node.checkVisibility({ visibilityProperty: true });
const showTab = (tab) => {
  const desk = document.querySelector(".ek-desk");
  if (!desk) return;
  desk.dataset.tab = tab;
  document.querySelectorAll(".ek-tabs button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.tab === tab)));
  document.querySelector(".ek-pane")?.dispatchEvent(new CustomEvent("ek-do", { detail: "appear" }));
};
const reveal = (node) => {
  if (!node || isInFront(node)) return;
  const tab = Object.keys(TABS).find((name) => node.closest(TABS[name][1]));
  if (tab && !node.closest(".ek-rare")) showTab(tab);
};

const HELD = ["previous", "next", "larger", "smaller"];
const PATIENCE = 2000;
const SLOW = "The server is slow. Your last keys were ignored; please repeat them.";
const LOADING = "The page was still loading: press again.";

// A key presses the button that is labelled with it, so that a key can never do what no button offers. In JupyterLab, which
// has its own keys, this applies only while the workbench has the focus.
const keyboard = (isAlone) => {
  const down = new Set();
  const OTHER_KEYS = { ",": "[", ".": "]" }; // on many keyboards brackets need a third key
  const name = (event) => {
    if (event.ctrlKey || event.metaKey) return event.key === "Enter" && !event.altKey ? "Ctrl+Enter" : "";
    if (event.altKey) return "";
    return event.shiftKey && /^[A-Z]$/.test(event.key) ? `Shift+${event.key}` : OTHER_KEYS[event.key] || event.key;
  };
  const isTyping = (target) => target?.closest?.("textarea, select, [contenteditable=true], input:not([type=checkbox]):not([type=radio]):read-write");
  // The keys of rare controls, and those of another tab, work although their buttons are not in sight.
  const isShown = (node) => (node.closest(".ek-rare")?.parentNode || node).getClientRects().length > 0;
  const buttonOf = (key) => [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(isShown);
  const token = () => document.querySelector(".ek-editor")?.dataset.token || "";
  const isPainted = () => {
    const { painted, told } = document.querySelector(".ek-pane")?.dataset || {};
    return Boolean(token()) && (painted || told || "").startsWith(`${token()}:`);
  };
  // True while the answer to a change or a page request is awaited: keys pressed meanwhile must wait for it.
  const isBusy = () => {
    const [editor, pane] = [document.querySelector(".ek-editor"), document.querySelector(".ek-pane")];
    if (!editor || !pane || !isShown(pane)) return false;
    return document.querySelector(".ek[data-busy]") !== null || (!("fault" in pane.dataset) && pane.dataset.asked !== editor.dataset.page);
  };

  // The case whose page was painted last: a key that was pressed before the first page of a case is in sight decides nothing.
  let inSight = "";
  const sighted = (event) => { inSight = event.detail.token; };
  document.addEventListener("ek-painted", sighted);
  const drop = (sentence) => document.dispatchEvent(new CustomEvent("evalkit-slow", { detail: sentence }));

  const waiting = [];
  const goOn = () => {
    while (waiting.length) {
      const { act, of, until, decides } = waiting[0];
      if (of !== token()) { // the key was meant for the previous case
        waiting.shift();
        if (decides) drop(LOADING);
        continue;
      }
      const isEarly = decides && !isPainted();
      if ((isBusy() || isEarly) && Date.now() < until) { setTimeout(goOn, 15); return; }
      if (isBusy() || isEarly) { // the key must wait for the state that it applies to
        waiting.length = 0;
        drop(isBusy() ? SLOW : LOADING);
        return;
      }
      if (isTyping(document.activeElement)) { waiting.length = 0; return; } // all later keys are typed text
      waiting.shift();
      act();
    }
  };
  const inTurn = (act, decides = false) => {
    waiting.push({ act, decides, of: token(), until: Date.now() + PATIENCE });
    if (waiting.length === 1) goOn();
  };
  // A decision by the mouse takes its turn after keys that wait: else a case would be submitted without the answer typed before.
  // So does a click that shows another page: else the waiting key would set the type of a document that it was not meant for.
  const click = (event) => {
    const node = event.isTrusted && waiting.length ? event.target.closest?.("button[data-decides], .ek-thumb, .ek-issue") : null;
    if (!node) return;
    event.preventDefault();
    event.stopPropagation();
    const { key, issue, decides } = node.dataset; // an answer may draw it anew
    const find = () => (key ? buttonOf(key) : issue ? document.querySelector(`.ek-issue[data-issue="${CSS.escape(issue)}"]`) : node);
    inTurn(() => { find()?.click(); }, decides !== undefined);
  };
  const press = (event) => {
    const key = name(event);
    const held = event.repeat || down.has(event.code);
    if (!event.metaKey) down.add(event.code); // while the Meta key is held, some systems never report the release
    const target = event.target instanceof Element ? event.target : document.body;
    if (!key || (!isAlone && !target.closest(".ek"))) return;
    if (document.querySelector(".ek-lost:not([hidden])")) return;
    const dialog = document.querySelector(".ek-keys:not([hidden])");
    if (dialog) {
      if (key === "Tab") { event.preventDefault(); dialog.querySelector("button").focus(); }
      if (key === "Escape" || key === dialog.dataset.key) { dialog.querySelector("button").click(); event.preventDefault(); }
      return;
    }
    if (isTyping(target) || event.defaultPrevented) return;
    if (key === "?") { document.dispatchEvent(new CustomEvent("evalkit-keys")); event.preventDefault(); return; }
    if (target.closest("[data-edge], .ek-marking, .ek-contact") && key.startsWith("Arrow")) return; // they move the edge, or select words or pages
    const isCovered = document.querySelector(".ek-contact:not([hidden]), .ek-compare:not([hidden])"); // true while a dialog covers the page
    // Enter on a button is for that button, and on a field that is not open for opening it.
    const isOwn = key === "Enter" && target.closest("button, summary, a[href], [data-field]:not([aria-current])");
    const button = isCovered || isOwn ? null : buttonOf(key);
    // While a typed value is being saved, its line shows no buttons; they return with the answer.
    const isKept = target.matches("input[readonly]");
    if (button || (isKept && !MOVES[key] && (key.length === 1 || key === "Enter"))) {
      event.preventDefault();
      event.stopPropagation();
      if (held && !button?.hasAttribute("data-repeats")) return; // a key that is held decides nothing
      const decides = button?.dataset.decides; // undefined: nothing; "case": the whole case, which never waits
      const isAnswer = decides !== undefined;
      if (isAnswer && !isPainted() && (decides === "case" || inSight !== token())) { drop(LOADING); return; }
      inTurn(() => {
        const now = buttonOf(key);
        if (!now || now.disabled) return;
        reveal(LIGHTING.includes(key) ? document.querySelector(TABS.page[1]) : now);
        now.click();
      }, isAnswer);
      return;
    }
    const pane = document.querySelector(".ek-pane");
    const isSeam = !isCovered && key === "Escape" && document.querySelector(".ek-seam:not([hidden])");
    const move = isCovered && key === "Escape" ? "sheet" : isSeam ? "leave" : MOVES[key];
    if (move && pane && isShown(pane)) {
      event.preventDefault();
      event.stopPropagation();
      if (event.repeat && (waiting.length || !HELD.includes(move))) return;
      const go = () => {
        reveal(document.querySelector(TABS.page[1]));
        pane.dispatchEvent(new CustomEvent("ek-do", { detail: move }));
      };
      if (waiting.length || isKept) inTurn(go); // after the keys that were pressed before this one
      else go(); // the pane itself changes the page
    }
  };
  const release = (event) => { if (event.key === "Meta") down.clear(); else down.delete(event.code); };
  const forget = () => down.clear();
  document.addEventListener("click", click, true);
  document.addEventListener("keydown", press, true);
  document.addEventListener("keyup", release, true);
  window.addEventListener("blur", forget);
  return () => {
    document.removeEventListener("ek-painted", sighted);
    document.removeEventListener("click", click, true);
    document.removeEventListener("keydown", press, true);
    document.removeEventListener("keyup", release, true);
    window.removeEventListener("blur", forget);
  };
};

function render({ model, el: root }) {
  root.classList.add("ek", "ek-bar");
  let answered = Date.now();
  let active = 0;
  let lastInput = Date.now();
  const touched = () => { lastInput = Date.now(); };
  const events = ["pointerdown", "pointermove", "keydown", "wheel"];
  events.forEach((name) => document.addEventListener(name, touched, { passive: true }));

  const place = model.get("can_log_out") ? PLACE_IN_URL : PLACE_IN_TAB;
  const overlay = el("div", { class: "ek ek-lost", role: "alertdialog", "aria-live": "assertive", "aria-labelledby": "ek-lost-title", hidden: true },
    el("div", { class: "ek-lost-card" },
      el("h2", { id: "ek-lost-title", text: "The connection is lost." }),
      el("p", { text: "What was shown as saved is saved. Reload the page to go on where you were." }),
      el("div", { class: "ek-row" },
        el("button", { class: "ek-primary", text: "Reload", onclick: () => location.reload() }),
        el("button", { text: "Back to the queue", hidden: true, onclick: () => { place.set("", true); location.reload(); } }))));
  document.body.append(overlay);
  const lost = () => {
    if (!overlay.hidden) return;
    overlay.hidden = false;
    overlay.querySelector("button").focus();
    if (model.get("can_log_out")) tellWhy();
  };
  // Ask the server why it closed the page. The open case may be the cause, so the expert can go back to the queue instead.
  const tellWhy = async () => {
    const { baseUrl, kernelId } = served();
    const response = await fetch(`${baseUrl}api/kernels/${kernelId}`).catch(() => null);
    if (response?.status === 403) {
      overlay.querySelector("h2").textContent = "Your login has ended.";
      overlay.querySelector("p").textContent = "Log in again. What was shown as saved is saved.";
      overlay.querySelector("button").textContent = "Log in";
      document.body.replaceChildren(overlay); // whoever comes to this screen next sees no document
      return;
    }
    const answer = await response?.json().catch(() => ({}));
    if (answer?.reason !== "memory") return;
    overlay.querySelector("h2").textContent = "This screen was closed.";
    overlay.querySelector("p").textContent = "It used more memory than one screen may use. What was shown as saved is saved. "
      + "Open it again. If it is closed again in the same case, go back to the queue and tell the people who run evalkit.";
    const [again, queue] = overlay.querySelectorAll("button");
    again.textContent = "Open again";
    queue.hidden = false;
  };
  const slow = el("div", { class: "ek ek-slow", role: "status" });
  let slowly = null;
  const toldSlow = (event) => {
    slow.textContent = event.detail;
    clearTimeout(slowly);
    slowly = setTimeout(() => { slow.textContent = ""; }, 5000);
  };
  document.body.append(slow);
  document.addEventListener("evalkit-slow", toldSlow);
  document.addEventListener("evalkit-lost", lost);

  const addDialog = (title, key, ...body) => {
    let before = null;
    const node = el("div", { class: "ek ek-keys", role: "dialog", "aria-modal": "true", "aria-label": title, "data-key": key, hidden: true },
      el("div", { class: "ek-keys-card" }, el("header", {}, el("h2", { text: title }), el("button", { text: "Close", onclick: () => toggle() })), body));
    const toggle = () => {
      node.hidden = !node.hidden;
      if (node.hidden) { before?.focus(); return; }
      before = document.activeElement;
      node.querySelector("button").focus();
    };
    document.body.append(node);
    return { node, toggle };
  };
  const ownKeys = shareTypes(model).slice(5).filter(({ key }) => key).map(({ type, key }) => [key, `Set its type: ${type}`]);
  const keys = addDialog("Keys", "?", el("div", { class: "ek-keys-groups" }, KEYS.map(([group, rows]) => el("section", {}, el("h3", { text: group }),
    el("dl", {}, [...rows, ...(group === TYPE_KEYS ? ownKeys : [])].map(([key, what]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })]))))));
  const toggleKeys = keys.toggle;
  document.addEventListener("evalkit-keys", toggleKeys);
  const block = ({ kind, lines }) => {
    if (kind === "heading") return lines.map((text) => el("h3", { text }));
    return kind === "list" ? el("ul", {}, lines.map((text) => el("li", { text }))) : el("p", { text: lines.join(" ") });
  };
  const guidelines = addDialog("Guidelines", "Shift+G", el("div", { class: "ek-guidelines", dir: "auto" }, model.get("guidelines").map(block)),
    el("h3", { text: "What the types of documents mean" }),
    model.get("types").map((one) => el("div", { class: `ek-claim ${typeClass(one.type)}` },
      el("b", { text: one.type }), el("p", { text: one.definition }),
      one.includes.length ? el("p", { class: "ek-muted", text: `Includes ${one.includes.join("; ")}.` }) : null,
      one.excludes.length ? el("p", { class: "ek-muted", text: `Not: ${one.excludes.join("; ")}.` }) : null)));
  model.on("change:guidelines", () => fill(guidelines.node.querySelector(".ek-guidelines"), model.get("guidelines").map(block)));
  const stopKeys = keyboard(model.get("can_log_out"));

  // By POST with the page's token: a link on another page must not log anybody out.
  const logout = el("button", { class: "ek-link", "data-focus": "logout", text: "Log out", onclick: () => {
    const token = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/)?.[1];
    const form = el("form", { method: "post", action: `${served().baseUrl}logout`, hidden: true }, el("input", { name: "_xsrf", value: token }));
    document.body.append(form);
    form.submit();
  } });

  const draw = () => {
    const done = model.get("done");
    const total = model.get("total");
    const median = model.get("median");
    const title = model.get("title");
    fill(root,
      el("span", { class: "ek-brand", text: "evalkit" }),
      title
        ? el("span", { class: "ek-crumbs" },
          el("button", { class: "ek-link", text: "Queue", "data-key": "h", title: "h", onclick: () => say(model, { action: "queue" }) }), " › ",
          el("b", { class: "ek-file", text: title }), el("span", { class: "ek-muted", text: ` · ${model.get("subtitle")}` }))
        : el("span", { class: "ek-crumbs" }, el("b", { text: "Queue" })),
      el("span", { class: "ek-grow" }),
      title ? el("div", { class: "ek-tabs", role: "group", "aria-label": "part of the screen" }, Object.entries(TABS).map(([tab, [text]]) => el("button", {
        "data-tab": tab, "data-focus": `tab ${tab}`, "aria-pressed": tab === (document.querySelector(".ek-desk")?.dataset.tab || "page"), text, onclick: () => showTab(tab),
      }))) : null,
      model.get("notice") ? el("span", { class: "ek-notice", text: model.get("notice") }) : null,
      el("span", { class: "ek-pill", title: "cases that you finished today; cases still open; your median time per case", text: `${done} done · ${total} left${median ? ` · median ${median}` : ""}` }),
      el("progress", { max: Math.max(done + total, 1), value: done, "aria-label": `${done} done by you today, ${total} left` }),
      el("span", { class: "ek-pill", text: [model.get("reviewer"), model.get("role")].filter(Boolean).join(" · ") }),
      el("button", { "data-key": "Shift+G", onclick: guidelines.toggle }, "Guidelines", kbd("⇧G")),
      el("button", { class: "ek-help", "data-focus": "help", "aria-label": "all keys", title: "All keys", onclick: toggleKeys }, el("kbd", { text: "?" })),
      model.get("can_log_out") ? logout : null,
    );
  };

  let id = null;
  const leave = () => say(model, { action: "leave", tab: id });
  window.addEventListener("pagehide", leave);
  // A reload could reach the server before the last press is saved, and would then restore the older draft.
  const asksFirst = (event) => {
    const isKept = document.dispatchEvent(new CustomEvent("evalkit-leaving", { cancelable: true }));
    if (!isKept || (overlay.hidden && document.querySelector(".ek[data-busy]"))) event.preventDefault();
  };
  document.addEventListener("evalkit-unload", asksFirst);
  window.addEventListener("beforeunload", asksFirst); // under `evalkit review` the outer page does this itself
  // True while the browser has gone to an address and its case is not shown yet: then the history has the address already.
  let isVisiting = true;
  const remember = () => { if (model.get("is_ready")) place.set(model.get("address"), isVisiting); };
  const arrived = () => { remember(); isVisiting = false; };
  const visited = () => {
    isVisiting = true;
    say(model, { action: "visit", case: place.get() });
  };
  const heard = (message) => {
    if (message.kind === "visited") arrived();
    if (message.kind !== "pong") return;
    answered = Date.now();
    if (message.tab === id) overlay.hidden = true;
    else lost(); // a new kernel has answered, which does not know what this page shows
  };
  const pulse = setInterval(() => {
    if (Date.now() - lastInput < 60000 && !document.hidden) active += PING_EVERY / 1000;
    if (id) say(model, { action: "ping", tab: id, active });
    if (Date.now() - answered > LOST_AFTER) lost();
  }, PING_EVERY);

  model.on("msg:custom", heard);
  model.on("change:address", remember);
  model.on("change:is_ready", arrived);
  if (place === PLACE_IN_URL) window.addEventListener("popstate", visited);
  const opened = () => showTab("page");
  model.on("change:address", opened);
  const pointed = (event) => { if (event.target.closest(".ek-thumb, .ek-evidence")) showTab("page"); };
  document.addEventListener("click", pointed);
  const stopDrawing = drawnOnChange(model, root, draw);
  announce(model, "notice");
  const replaced = ownIds.has(model.get("tab"));
  tab ??= replaced ? Promise.resolve(model.get("tab")) : tabId();
  tab.then((mine) => {
    id = mine;
    ownIds.add(id);
    say(model, { action: "hello", tab: id, case: replaced ? model.get("address") : place.get() });
  });
  return () => {
    clearInterval(pulse);
    events.forEach((name) => document.removeEventListener(name, touched));
    window.removeEventListener("pagehide", leave);
    window.removeEventListener("popstate", visited);
    document.removeEventListener("evalkit-unload", asksFirst);
    window.removeEventListener("beforeunload", asksFirst);
    document.removeEventListener("evalkit-lost", lost);
    document.removeEventListener("evalkit-keys", toggleKeys);
    document.removeEventListener("evalkit-slow", toldSlow);
    document.removeEventListener("click", pointed);
    clearTimeout(slowly);
    slow.remove();
    stopKeys();
    stopDrawing();
    overlay.remove();
    keys.node.remove();
    guidelines.node.remove();
  };
}

export default { render };
