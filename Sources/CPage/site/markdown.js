// As much of Markdown as the description uses: paragraphs, lists, code, strong text and links to web pages.

import { h } from "./dom.js";

/**
 * Elements for a text in Markdown.
 *
 * @param {string} text
 * @returns {Node[]}
 */
export function markdown(text) {
  return text.trim().split(/\n{2,}/).map((block) => {
    if (!/^[-*] /.test(block)) return h("p", {}, inline(block));
    const items = block.split(/\n(?=[-*] )/).map((item) => h("li", {}, inline(item.slice(2))));
    return h("ul", { class: "bullets" }, items);
  });
}

/** The pieces of a line. */
export function inline(text) {
  return text.replace(/\s*\n\s*/g, " ").split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\(https?:[^)\s]+\))/).map((piece) => {
    if (piece.startsWith("`")) return h("code", {}, piece.slice(1, -1));
    if (piece.startsWith("**")) return h("strong", {}, piece.slice(2, -2));
    const link = /^\[([^\]]+)\]\((https?:[^)]+)\)$/.exec(piece);
    return link ? h("a", { href: link[2], rel: "noreferrer" }, link[1]) : piece;
  });
}
