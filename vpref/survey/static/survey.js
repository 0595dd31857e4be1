// The pages work without this file. With it, an answer waits for its picture, a second click sends nothing, and what
// was typed survives a refresh.
"use strict";
(() => {
  const form = document.getElementById("answer");
  const save = document.getElementById("save");
  const state = document.getElementById("state");
  const image = document.getElementById("image");
  const key = "survey-draft-" + form.dataset.question;
  const problems = document.getElementById("problems");
  form.autocomplete = "off"; // going back, a browser would fill in what this tab had; another one's may be newer
  if (problems) problems.focus();

  // --- the picture
  const seen = () => image.complete && image.naturalWidth > 0;
  const allow = () => {
    save.disabled = false;
    state.textContent = "";
  };
  const miss = () => {
    save.disabled = true;
    state.textContent = "This cannot be answered without its picture.";
    document.getElementById("image-missing").hidden = false;
    const unseen = document.getElementById("unseen");
    const body = new FormData(unseen);
    body.append("browser", "1");
    fetch(unseen.action, { method: "POST", body }).catch(() => {});
  };
  if (image && !seen()) {
    save.disabled = true;
    state.textContent = "Waiting for the picture.";
    if (image.complete) miss();
    image.addEventListener("load", allow);
    image.addEventListener("error", miss);
  }

  // --- what was typed survives until it was sent and is kept
  const draft = () => {
    const typed = {};
    for (const one of form.elements) {
      if (one.type === "textarea" || (one.type === "radio" && one.checked)) typed[one.name] = one.value;
    }
    return typed;
  };
  const keep = (sent) => {
    try {
      sessionStorage.setItem(key, JSON.stringify({ sent, typed: draft() }));
    } catch {
      // no storage in this browser: the pages do without
    }
  };
  const restore = () => {
    const kept = JSON.parse(sessionStorage.getItem(key) || "null");
    if (!kept || problems || (kept.sent && form.dataset.answered)) return;
    for (const one of form.elements) {
      if (one.type === "textarea") one.value = kept.typed[one.name] ?? one.value;
      if (one.type === "radio" && one.name in kept.typed) one.checked = kept.typed[one.name] === one.value;
    }
  };
  try {
    restore();
  } catch {
    // as above
  }
  form.addEventListener("input", () => keep(false));

  // --- sending once
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
    keep(true);
    state.textContent = "Saving.";
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // kept whole by the browser, so as old as above
    sent = false;
    if (state.textContent === "Saving.") state.textContent = "";
  });
})();
