import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  type CompletionSource,
  completionStatus,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { msg } from "../i18n/messages";
import { type EditorLanguage, languageOf } from "./editor-languages";
import { look } from "./editor-look";
import { panelPhrases } from "./editor-phrases";
import type { Finding } from "./finding";

interface MirrorOptions {
  value: string;
  label: string;
  /** The ID of the description. */
  described: string;
  onChange: (value: string) => void;
  complete?: (word: string) => Promise<{ label: string; detail?: string }[]>;
}

/**
 * Escape, then Tab leaves the editor. Completions that are still looked for, as after each word, would use up the
 * Escape, and Tab would indent.
 */
const leavable = Prec.highest(
  keymap.of([
    {
      key: "Escape",
      run: (view) => {
        if (completionStatus(view.state) === "pending") closeCompletion(view);
        return false;
      },
    },
  ]),
);

const fromOutside = Annotation.define<boolean>();

/** Mirror is a CodeMirror editor for the texts of skills. */
export class Mirror {
  private readonly view: EditorView;
  private readonly language = new Compartment();
  private readonly readable = new Compartment();
  private wanted = "";
  /** Recent changes that may come back as the value while the user types. */
  private told: string[] = [];

  constructor(parent: HTMLElement, { value, label, described, onChange, complete }: MirrorOptions) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          foldGutter(),
          lintGutter(),
          highlightSpecialChars(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          leavable,
          autocompletion(complete ? { override: [source(complete)] } : {}),
          search({ top: true }),
          indentUnit.of("  "),
          EditorView.lineWrapping,
          look,
          EditorState.phrases.of(panelPhrases()),
          keymap.of([
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...foldKeymap,
            ...completionKeymap,
            ...lintKeymap,
            indentWithTab,
          ]),
          EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": described, tabindex: "0" }),
          EditorView.updateListener.of(
            (u) =>
              u.docChanged &&
              !u.transactions.some((t) => t.annotation(fromOutside)) &&
              this.tell(u.state.doc.toString(), onChange),
          ),
          this.language.of([]),
          this.readable.of([]),
        ],
      }),
    });
  }

  private tell(value: string, onChange: (value: string) => void) {
    this.told = [...this.told.slice(-20), value];
    onChange(value);
  }

  /**
   * set replaces the text with a minimal change, so that the cursor stays. It ignores values that
   * the editor itself sent earlier.
   */
  set(value: string) {
    const at = this.told.lastIndexOf(value);
    this.told = this.told.slice(at + 1);
    const now = this.view.state.doc.toString();
    if (at >= 0 || now === value) return;
    this.told = [];
    let from = 0;
    while (from < Math.min(now.length, value.length) && now[from] === value[from]) from++;
    let end = 0;
    while (end < Math.min(now.length, value.length) - from && now.at(-1 - end) === value.at(-1 - end)) end++;
    this.view.dispatch({
      changes: { from, to: now.length - end, insert: value.slice(from, value.length - end) },
      annotations: fromOutside.of(true),
    });
  }

  speak(language: EditorLanguage) {
    this.wanted = language;
    void languageOf(language).then(
      (l) => this.wanted === language && this.view.dispatch({ effects: this.language.reconfigure(l) }),
      () => undefined,
    );
  }

  lock(readOnly: boolean) {
    this.view.dispatch({
      effects: this.readable.reconfigure(
        readOnly ? [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-readonly": "true" })] : [],
      ),
    });
  }

  find(findings: Finding[]) {
    this.view.dispatch(
      setDiagnostics(
        this.view.state,
        findings.map((f) => this.diagnostic(f)),
      ),
    );
  }

  private diagnostic(f: Finding): Diagnostic {
    const { from, to } = this.place(f.line, f.column);
    const apply = f.apply;
    return {
      from,
      to,
      message: f.message,
      severity: f.severity === "error" || f.severity === "warning" ? f.severity : "info",
      actions: apply && [{ name: f.fix || msg("editor.fix"), apply: () => apply() }],
    };
  }

  /** place returns the range of the word at a position, or the rest of its line. */
  private place(line: number, column: number) {
    const doc = this.view.state.doc;
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
    const word = /^[\w-]+/.exec(at.text.slice(from - at.from));
    return { from, to: column > 1 && word ? from + word[0].length : at.to };
  }

  /** go moves the cursor to a line and takes the focus. */
  go(line: number, column = 1) {
    const { from } = this.place(line, column);
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }

  focus(at: number) {
    this.view.dispatch({ selection: { anchor: Math.min(at, this.view.state.doc.length) } });
    this.view.focus();
  }

  end() {
    this.view.destroy();
  }
}

function source(complete: (word: string) => Promise<{ label: string; detail?: string }[]>): CompletionSource {
  return async (context) => {
    const word = context.matchBefore(/[\p{L}\p{N}_./:@-]+/u);
    if (!word && !context.explicit) return null;
    const options = await complete(word?.text ?? "").catch(() => []);
    return options.length && !context.aborted ? { from: word?.from ?? context.pos, options } : null;
  };
}
