"use strict";
(() => {
  const read = id => JSON.parse(document.getElementById(id).textContent);
  const data = read("data"), specs = read("charts");
  const PAGE = 60;
  const CATEGORIES = ["0 typical, low", "1 typical, high", "2 atypical, low", "3 atypical, high"];
  const SIGNS = { right: "✓", wrong: "✗", split: "≠", unmatched: "?", refused: "∅", failed: "!" };
  const FIELDS = ["q", "variant", "category", "fate", "issue", "at", "run", "model", "outcome", "right", "wrong"];
  const SCORED_WRONG = new Set(["wrong", "split", "unmatched", "refused"]);

  // All text goes in as text: what a model wrote is never read as HTML.
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter(child => child !== null && child !== undefined));
    return element;
  };

  // --- charts -----------------------------------------------------------------------------------------------
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Set();
  const look = print => {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const ink = print ? "#000" : colour("--ink"), line = print ? "#bbb" : colour("--faint"), main = print ? "#1b57b0" : colour("--main");
    return {
      background: "transparent", font: "system-ui, sans-serif", view: { stroke: null },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12 }, header: { labelColor: ink, labelFontSize: 12 },
      title: { color: ink }, text: { color: ink, fontSize: 12 }, rule: { color: main }, point: { color: main }, bar: { color: main }, line: { color: main },
      range: { category: dark.matches && !print ? ["#8ab8ff", "#ffb86b", "#7fd6a3", "#e6a3ff", "#ffe08a", "#9fe0e8", "#ff9e9e", "#c2c8d0", "#c9e265", "#d9b38c"] : ["#1b57b0", "#b85c00", "#1d7a46", "#8a2fb0", "#7a6200", "#0f7580", "#c2313a", "#5f6873", "#5b7a00", "#7d4e24"] },
    };
  };
  const draw = (place, print = false) => {
    const spec = structuredClone(specs[place.dataset.chart]);
    const room = Math.min(place.parentElement.clientWidth || 640, 960), narrow = room < 600;
    const names = narrow ? 130 : 320;
    if (typeof spec.width === "number") spec.width = Math.max(160, Math.min(spec.width, room - names - 30));
    if (spec.columns && narrow) Object.assign(spec, { columns: 1 });
    const config = look(print);
    spec.config = { ...spec.config, ...config, axisY: { labelLimit: names } };
    drawn.add(place);
    return window.vegaEmbed(place, spec, { actions: false, renderer: "svg" })
      .then(() => place.querySelector("svg").setAttribute("aria-hidden", "true"));  // the place itself has the words
  };
  const places = [...document.querySelectorAll(".chart")];
  const seen = new IntersectionObserver(found => found.forEach(one => {
    if (one.isIntersecting) { seen.unobserve(one.target); draw(one.target); }
  }), { rootMargin: "400px" });
  places.forEach(place => seen.observe(place));
  dark.addEventListener("change", () => drawn.forEach(place => draw(place)));
  window.addEventListener("beforeprint", () => places.forEach(place => draw(place, true)));
  window.addEventListener("afterprint", () => places.forEach(place => draw(place)));

  // --- filters ----------------------------------------------------------------------------------------------
  const form = document.getElementById("filters"), gallery = document.getElementById("gallery");
  const more = document.getElementById("more"), count = document.getElementById("count");
  const texts = data.items.map(item => [item.id, item.scene, item.preference, item.question, ...(item.choices || []), item.reason,
    ...item.responses.map(one => one.text), ...item.rounds.map(one => one.analysis)].filter(Boolean).join("\n").toLowerCase());
  let state = {}, shown = [], upto = 0;

  const options = (name, values) => {
    const select = form.elements[name];
    select.append(make("option", { value: "" }, "any"), ...values.map(([value, text]) => make("option", { value }, text)));
    if (!values.length) select.closest("label").hidden = true;
  };
  const distinct = values => [...new Set(values)].filter(one => one !== undefined && one !== null).sort();
  const named = names => names.map((name, number) => [String(number), name]);
  options("variant", distinct(data.items.map(one => one.variant)).map(one => [one, one]));
  options("category", distinct(data.items.map(one => one.category)).map(one => [String(one), CATEGORIES[one]]));
  options("fate", distinct(data.items.map(one => one.fate)).map(one => [one, one]));
  options("issue", distinct(data.items.flatMap(one => one.rounds.map(round => round.issue || "none"))).map(one => [one, one.replaceAll("_", " ")]));
  options("run", data.runs.length > 1 ? named(data.runs) : []);
  options("model", named(data.models));
  options("outcome", data.models.length ? [["not right", "not right"], ...(data.models.length > 1 ? [["differ", "models differ"]] : []), ...Object.keys(SIGNS).map(one => [one, one])] : []);
  options("right", data.models.length > 1 ? named(data.models) : []);
  options("wrong", data.models.length > 1 ? named(data.models) : []);

  const verdicts = item => item.responses.filter(one => !state.model || one.model === Number(state.model)).map(one => one.verdict);
  const of = (item, model) => (item.responses.find(one => one.model === Number(model)) || {}).verdict;
  const fits = (item, number) => {
    if (state.variant && item.variant !== state.variant) return false;
    if (state.category && !state.category.split(",").includes(String(item.category))) return false;
    if (state.fate && item.fate !== state.fate) return false;
    if (state.run && !item.runs.includes(Number(state.run))) return false;
    if (state.issue) {
      const rounds = state.at ? item.rounds.slice(Number(state.at), Number(state.at) + 1) : item.rounds;
      if (!rounds.some(one => (one.issue || "none") === state.issue)) return false;
    }
    if (state.model && !verdicts(item).length) return false;
    if (state.outcome === "differ") {
      if (new Set(item.responses.map(one => one.verdict === "failed" ? "failed" : one.verdict === "right")).size < 2) return false;
    } else if (state.outcome && !verdicts(item).some(one => one === state.outcome || (state.outcome === "not right" && SCORED_WRONG.has(one)))) return false;
    if (state.right && of(item, state.right) !== "right") return false;
    if (state.wrong && !SCORED_WRONG.has(of(item, state.wrong))) return false;
    return !state.q || state.q.toLowerCase().split(/\s+/).every(word => texts[number].includes(word));
  };

  const address = () => {
    const kept = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
    return "#items" + (String(kept) ? "?" + kept : "");
  };
  const apply = () => {
    shown = [];
    data.items.forEach((item, number) => { if (fits(item, number)) shown.push(number); });
    gallery.replaceChildren();
    upto = 0;
    count.textContent = `${shown.length.toLocaleString("en")} of ${data.items.length.toLocaleString("en")} items`
      + (state.at ? `; the issue found by review ${Number(state.at) + 1}` : "");
    grow();
  };
  const grow = () => {
    const next = shown.slice(upto, upto + PAGE);
    gallery.append(...next.map(card));
    upto += next.length;
    more.hidden = upto >= shown.length;
    more.textContent = `Show ${Math.min(PAGE, shown.length - upto)} more`;
  };
  const card = number => {
    const item = data.items[number];
    const marks = item.responses.map(one => make("span", { class: `mark ${one.verdict}`, title: `${data.models[one.model]}: ${one.verdict}` }, SIGNS[one.verdict]));
    const where = `${item.variant} ${CATEGORIES[item.category]}` + (item.fate && item.fate !== "accepted" ? `, ${item.fate}` : "");
    const button = make("button", { type: "button", "data-item": number }, picture(item),
      make("span", { class: "question" }, item.question || item.reason || item.id), make("span", { class: "quiet" }, where), make("span", { class: "marks" }, ...marks));
    return make("li", {}, button);
  };
  const picture = item => {
    const source = data.images[item.image];
    return source ? make("img", { src: source, alt: "", loading: "lazy", decoding: "async" }) : make("span", { class: "no-picture" }, "no picture");
  };

  // --- one item ---------------------------------------------------------------------------------------------
  const detail = document.getElementById("detail");
  let opener = null, at = 0;
  const open = place => {
    at = place;
    const item = data.items[shown[place]];
    const step = (name, by) => {
      const button = make("button", { type: "button", disabled: shown[place + by] === undefined ? "" : null }, name);
      button.addEventListener("click", () => open(place + by));
      return button;
    };
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => detail.close());
    const title = make("h2", { id: "detail-title", tabindex: "-1" }, item.question || `No item: ${item.reason}`);
    detail.replaceChildren(make("div", { class: "bar" }, step("← Before", -1), step("Next →", 1), make("span", { class: "quiet" }, `${place + 1} of ${shown.length}`), close),
      title, ...body(item));
    if (!detail.open) detail.showModal();
    detail.scrollTop = 0;
    title.focus();
    history.replaceState(null, "", "#item=" + item.id);
  };
  detail.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && shown[at + by] !== undefined) open(at + by);
  });
  detail.addEventListener("close", () => {
    history.replaceState(null, "", address());
    if (opener) opener.focus();
  });
  const body = item => {
    const parts = [make("p", { class: "quiet" }, [item.id, `${item.variant} ${CATEGORIES[item.category]}`, item.fate, ...item.runs.filter(() => data.runs.length > 1).map(one => data.runs[one])].filter(Boolean).join(" · "))];
    const told = make("div", {}, item.scene ? make("p", {}, make("strong", {}, "Scene. "), item.scene) : null,
      item.preference ? make("blockquote", {}, item.preference) : null, choices(item));
    parts.push(make("div", { class: "two" }, picture(item), told));
    if (item.responses.length) parts.push(make("h3", {}, "Responses"), responses(item));
    if (item.votes) parts.push(make("h3", {}, "People"), ...people(item));
    if (item.rounds.length) parts.push(make("h3", {}, "How it came about"), ...item.rounds.map(round));
    return parts;
  };
  const choices = item => item.choices ? make("ol", { class: "choices" }, ...item.choices.map((text, place) => {
    const letter = "abcd"[place], votes = (item.votes || {})[letter];
    return make("li", { class: item.right === letter ? "is-right" : "" }, make("span", { class: "letter" }, letter), make("span", {}, text,
      item.right === letter ? make("em", {}, item.by === "people" ? " right, say people" : " right") : null,
      votes ? make("span", { class: "quiet" }, ` ${votes} vote${votes > 1 ? "s" : ""}`) : null));
  }), (item.votes || {}).other ? make("li", {}, make("span", { class: "letter" }, "–"), `other: ${item.votes.other}`) : null) : "";
  const responses = item => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Model", "Letter", "Outcome", "Said"].map(name => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...item.responses.map(one => make("tr", {}, make("th", { scope: "row" }, data.models[one.model]), make("td", {}, one.letter || "–"),
      make("td", { class: one.verdict }, `${SIGNS[one.verdict]} ${one.verdict}` + (one.by ? ` (${one.by})` : "") + (one.expected ? `, scored against ${one.expected}` : "")),
      make("td", { class: "said" }, one.text || one.reason || "", one.probabilities ? make("span", { class: "quiet" }, " " + Object.entries(one.probabilities).map(([name, share]) => `${name} ${(100 * share).toFixed(1)}%`).join(", ")) : null))))));
  const people = item => [make("p", {}, Object.entries(item.votes).map(([name, votes]) => `${name}: ${votes} vote${votes > 1 ? "s" : ""}`).join(", ")
      + (item.difficulty ? `; difficulty ${item.difficulty.toFixed(1)} (1 very easy, 5 very difficult)` : "")),
    ...(item.why || []).map(([name, why]) => make("p", { class: "quiet" }, `${name}: “${why}”`))];
  const round = (one, number) => make("div", { class: "round" },
    make("p", {}, make("strong", {}, number ? `Review of revision ${number}: ` : "Review of the first draft: "), make("span", { class: one.issue ? "wrong" : "right" }, (one.issue || "no issue").replaceAll("_", " ")),
      one.by === "code" ? make("span", { class: "quiet" }, " (found by rule)") : null),
    one.analysis ? make("p", {}, one.analysis) : null, one.fix ? make("p", {}, make("strong", {}, "Revised. "), one.fix) : null,
    ...Object.entries(one.changes).map(([name, words]) => make("p", { class: "diff" }, make("span", { class: "quiet" }, `${name.length === 1 ? "choice " : ""}${name}: `),
      ...words.map(([sign, text]) => sign === "=" ? text : make(sign === "-" ? "del" : "ins", {}, text)))));

  // --- what happens -----------------------------------------------------------------------------------------
  gallery.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    opener = button;
    open(shown.indexOf(Number(button.dataset.item)));
  });
  more.addEventListener("click", () => {
    const next = upto;
    grow();
    gallery.children[next]?.querySelector("button").focus();
  });
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", () => {
    state = Object.fromEntries(FIELDS.map(name => [name, form.elements[name]?.value || ""]));
    history.replaceState(null, "", address());
    apply();
  });
  form.addEventListener("reset", () => {
    state = {};
    history.replaceState(null, "", "#items");
    setTimeout(apply);
  });
  const follow = () => {
    const [place, query] = location.hash.slice(1).split("?");
    if (place !== "items" && !place.startsWith("item=")) return;
    const given = new URLSearchParams(query || "");
    state = Object.fromEntries(FIELDS.map(name => [name, given.get(name) || ""]));
    for (const name of FIELDS) {
      const field = form.elements[name];
      if (!field) continue;
      if (field.options && state[name] && ![...field.options].some(one => one.value === state[name]))
        field.append(make("option", { value: state[name] }, state[name].split(",").map(one => CATEGORIES[one] || one).join(" or ")));
      field.value = state[name];
    }
    apply();
    if (place.startsWith("item=")) {
      const number = data.items.findIndex(one => one.id === place.slice(5));
      if (number >= 0) open(shown.indexOf(number));
    } else document.getElementById("items").scrollIntoView();
  };
  window.addEventListener("hashchange", follow);
  apply();
  follow();
  document.documentElement.dataset.ready = "yes";
})();
