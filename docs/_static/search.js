// The search of the site: sections ranked by BM25, with excerpts. The texts come with a script (search-sections.js), so
// that it works from files too.
"use strict";

const LISTED = 40;
const EXCERPT = 220;
// How much more an occurrence counts in the title of a section, and in the title of its page.
const IN_TITLE = 8, IN_PAGE = 2;
// A word that begins with the term counts less than the term itself.
const BEGINNING = 0.5;
const SATURATION = 1.4, LENGTH = 0.5;

function wordsOf(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}]+(?:_[\p{L}\p{N}]+)*/gu) ?? [];
}

class Index {
    constructor(sections) {
        this.sections = sections;
        // word -> list of [section, weighted number of occurrences]
        this.found = new Map();
        this.lengths = sections.map(([, title, page, text], number) => {
            const counts = new Map();
            const add = (words, weight) => words.forEach((word) => counts.set(word, (counts.get(word) ?? 0) + weight));
            const words = wordsOf(text);
            add(words, 1);
            add(wordsOf(title), IN_TITLE);
            // "fit_transform" is found by "fit" and by "transform" too
            add(wordsOf(title).flatMap((word) => (word.includes("_") ? word.split("_") : [])), IN_TITLE / 2);
            add(wordsOf(page), IN_PAGE);
            for (const [word, count] of counts) {
                if (!this.found.has(word)) this.found.set(word, []);
                this.found.get(word).push([number, count]);
            }
            return words.length + 10;
        });
        this.average = this.lengths.reduce((sum, one) => sum + one, 0) / Math.max(1, sections.length);
        this.words = [...this.found.keys()].sort();
    }

    // The words that a term stands for, with their weights.
    matching(term) {
        const stem = term.length > 4 ? term.replace(/(?:es|s|ed|ing)$/, "") : term;
        const words = new Map();
        let [low, high] = [0, this.words.length];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.words[middle] < stem) low = middle + 1;
            else high = middle;
        }
        for (; low < this.words.length && this.words[low].startsWith(stem); low++) {
            const word = this.words[low];
            if (word === term) words.set(word, 1);
            else if (stem.length >= 3) words.set(word, word.length - stem.length <= 2 ? 0.9 : BEGINNING);
        }
        return words;
    }

    search(query) {
        const terms = [...new Set(wordsOf(query))];
        const scores = new Map(), matched = new Map();
        for (const term of terms) {
            const best = new Map();
            for (const [word, weight] of this.matching(term)) {
                for (const [number, count] of this.found.get(word)) best.set(number, (best.get(number) ?? 0) + weight * count);
            }
            const rarity = Math.log(1 + (this.sections.length - best.size + 0.5) / (best.size + 0.5));
            for (const [number, count] of best) {
                const room = SATURATION * (1 - LENGTH + (LENGTH * this.lengths[number]) / this.average);
                scores.set(number, (scores.get(number) ?? 0) + (rarity * count * (SATURATION + 1)) / (count + room));
                matched.set(number, (matched.get(number) ?? 0) + 1);
            }
        }
        const whole = query.trim().toLowerCase();
        const rank = ([number, score]) => {
            const title = this.sections[number][1].toLowerCase();
            // the name of an object counts more, the fewer modules it is in
            const exact = title === whole ? 3 : title.endsWith(`.${whole}`) ? 2 + 2 / title.split(".").length : 1;
            return exact * score * (matched.get(number) / terms.length) ** 2;
        };
        return [...scores].map((one) => [one[0], rank(one)]).sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([number]) => this.sections[number]);
    }
}

// Returns the part of a text around most of the terms, with the terms marked.
function excerpt(text, terms) {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${terms.map((term) => term.replace(/(?<=.{4})(?:es|s|ed|ing)$/, "")).join("|")})[\\p{L}\\p{N}]*`, "giu");
    const places = [...text.matchAll(pattern)].map(({ index }) => index);
    let [from, most] = [0, 0];
    for (const place of places) {
        const inside = places.filter((other) => other >= place && other < place + EXCERPT).length;
        if (inside > most) [from, most] = [Math.max(0, place - 50), inside];
    }
    if (from > 0) from = text.indexOf(" ", from) + 1;
    const part = text.slice(from, from + EXCERPT);
    const shown = document.createElement("p");
    let at = 0;
    for (const { index, 0: word } of part.matchAll(pattern)) {
        const mark = document.createElement("mark");
        mark.textContent = word;
        shown.append(part.slice(at, index), mark);
        at = index + word.length;
    }
    shown.append(part.slice(at));
    if (from > 0) shown.prepend("… ");
    if (from + EXCERPT < text.length) shown.append(" …");
    return shown;
}

function show(index, query) {
    const terms = [...new Set(wordsOf(query))];
    const found = terms.length ? index.search(query) : [];
    const root = document.documentElement.dataset.content_root ?? "";
    document.getElementById("search-summary").textContent = !terms.length ? "" : found.length > LISTED ? `The best ${LISTED} of ${found.length} sections` : `${found.length} section${found.length === 1 ? "" : "s"}`;
    document.getElementById("search-results").replaceChildren(
        ...found.slice(0, LISTED).map(([address, title, page, text]) => {
            const item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("small");
            link.href = root + address;
            link.textContent = title;
            where.textContent = page === title ? "" : page;
            item.append(link, " ", where, excerpt(text, terms));
            return item;
        }),
    );
}

const query = new URLSearchParams(location.search).get("q") ?? "";
const siteIndex = new Index(window.searchSections);
for (const input of document.querySelectorAll("form.bd-search input")) {
    input.value = query;
    input.addEventListener("input", () => input.closest(".bd-search-container") && show(siteIndex, input.value));
}
show(siteIndex, query);
document.querySelector(".bd-search-container input")?.focus();
