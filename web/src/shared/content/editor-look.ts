import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const of = (token: string) => `var(--${token})`;

/** The editor's theme, with the colors of the page. */
export const look = [
  EditorView.theme({
    "&": { color: of("text"), backgroundColor: of("surface"), fontSize: of("t-s"), height: "100%" },
    "&.cm-focused": { outline: "none" },
    ".cm-scroller": { fontFamily: of("mono"), lineHeight: "1.6" },
    ".cm-content": { caretColor: of("text"), padding: "var(--s2) 0" },
    ".cm-cursor": { borderLeftColor: of("text"), borderLeftWidth: "2px" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
      background: "color-mix(in srgb, var(--accent) 22%, transparent)",
    },
    ".cm-gutters": { backgroundColor: of("sunken"), color: of("muted"), borderRight: "1px solid var(--line)" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
    ".cm-panels": { backgroundColor: of("sunken"), color: of("text"), borderColor: of("line") },
    ".cm-panels .cm-textfield": {
      backgroundColor: of("surface"),
      color: of("text"),
      border: "1px solid var(--line-strong)",
      borderRadius: of("radius-s"),
      fontSize: of("t-s"),
      padding: "2px 6px",
    },
    ".cm-panels .cm-button": {
      backgroundImage: "none",
      backgroundColor: of("surface"),
      color: of("text"),
      border: "1px solid var(--line-strong)",
      borderRadius: of("radius-s"),
      fontSize: of("t-s"),
    },
    ".cm-panels label": { fontSize: of("t-xs"), color: of("text") },
    ".cm-panel.cm-search [name=close], .cm-panel [name=close]": { color: of("text"), padding: "0 6px" },
    ".cm-tooltip": {
      backgroundColor: of("surface"),
      color: of("text"),
      border: "1px solid var(--line)",
      borderRadius: of("radius-s"),
      boxShadow: of("shadow"),
    },
    ".cm-tooltip-autocomplete > ul": { fontFamily: of("mono"), fontSize: of("t-s") },
    ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
      backgroundColor: of("accent-soft"),
      color: of("accent-strong"),
    },
    ".cm-completionDetail": { color: of("muted"), fontStyle: "normal" },
    ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
    ".cm-searchMatch": { backgroundColor: of("warn-soft"), outline: "1px solid var(--warn)" },
    ".cm-searchMatch-selected": { backgroundColor: of("accent-soft"), outline: "2px solid var(--accent)" },
    ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
      backgroundColor: of("accent-soft"),
      outline: "1px solid var(--accent)",
    },
    ".cm-diagnostic": { fontFamily: of("font"), fontSize: of("t-s"), borderLeftWidth: "4px" },
    ".cm-diagnostic-error": { borderLeftColor: of("bad") },
    ".cm-diagnostic-warning": { borderLeftColor: of("warn") },
    ".cm-diagnostic-info": { borderLeftColor: of("accent") },
    ".cm-diagnosticAction": {
      backgroundColor: of("accent"),
      color: of("on-accent"),
      borderRadius: of("radius-s"),
      fontSize: of("t-s"),
      padding: "2px 8px",
    },
    ".cm-lintRange": {
      backgroundImage: "none",
      textDecorationLine: "underline",
      textDecorationStyle: "wavy",
      textUnderlineOffset: "3px",
      textDecorationSkipInk: "none",
    },
    ".cm-lintRange-error": { textDecorationColor: of("bad") },
    ".cm-lintRange-warning": { textDecorationColor: of("warn") },
    ".cm-lintRange-info": { textDecorationColor: of("accent") },
    ".cm-lint-marker": {
      content: "normal",
      width: "0.5em",
      height: "0.5em",
      margin: "0.5em auto 0",
      borderRadius: "50%",
    },
    ".cm-lint-marker-error": { content: "normal", backgroundColor: of("bad") },
    ".cm-lint-marker-warning": { content: "normal", backgroundColor: of("warn") },
    ".cm-lint-marker-info, .cm-lint-marker-hint": { content: "normal", backgroundColor: of("accent") },
    ".cm-foldPlaceholder": { backgroundColor: of("sunken"), border: "1px solid var(--line)", color: of("muted") },
  }),
  syntaxHighlighting(
    HighlightStyle.define([
      {
        tag: [
          tags.keyword,
          tags.operatorKeyword,
          tags.controlKeyword,
          tags.definitionKeyword,
          tags.moduleKeyword,
          tags.tagName,
        ],
        color: of("code-keyword"),
      },
      { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.link, tags.url], color: of("code-string") },
      { tag: [tags.number, tags.bool, tags.null, tags.atom], color: of("code-number") },
      { tag: [tags.comment, tags.meta, tags.quote, tags.processingInstruction], color: of("code-comment") },
      {
        tag: [
          tags.propertyName,
          tags.attributeName,
          tags.definition(tags.variableName),
          tags.function(tags.variableName),
          tags.typeName,
          tags.className,
          tags.standard(tags.name),
        ],
        color: of("code-name"),
      },
      { tag: tags.monospace, color: of("code-string") },
      { tag: [tags.heading, tags.strong], fontWeight: "650" },
      { tag: tags.heading, color: of("code-name") },
      { tag: tags.emphasis, fontStyle: "italic" },
      { tag: tags.strikethrough, textDecoration: "line-through" },
    ]),
  ),
];
