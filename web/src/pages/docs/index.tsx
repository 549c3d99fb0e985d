import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useLoad } from "../../shared/api/client";
import { Markdown } from "../../shared/content";
import { language } from "../../shared/i18n/language";
import { msg } from "../../shared/i18n/messages";
import { Problem, Waiting } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { headings } from "./headings";

/** The directories of the languages of the documentation. English is in none. */
const directories: Record<string, string> = { "zh-Hans": "zh/" };

interface Doc {
  title: string;
  text: string;
  /** The directory of its file. */
  base: string;
  /** Returns the anchor of a section by its English anchor. */
  section: (english: string) => string;
}

async function read(path: string, signal: AbortSignal): Promise<string | undefined> {
  const response = await fetch(`/docs/${path}.md`, { signal });
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(response.statusText);
  return response.text();
}

/** readDoc reads a page in a language, or in English if there is no translation. */
async function readDoc(name: string, code: string, signal: AbortSignal): Promise<Doc | undefined> {
  const directory = directories[code] ?? "";
  const english = await read(name, signal);
  const translated = directory && (await read(directory + name, signal));
  const text = translated || english;
  if (!text || english === undefined) return undefined;
  const [from, to] = [headings(english), headings(text)];
  return {
    title: /^# (.+)$/m.exec(text)?.[1] ?? name,
    text: text.replace(/^# .+\n/, ""),
    base: translated ? "zh" : "",
    section: (anchor) => to[from.indexOf(anchor)] ?? anchor,
  };
}

/** addressOf returns the address of a file of the documentation on this page. */
const addressOf = (path: string): string | undefined => {
  const name = /^(?:zh\/)?([\w-]+)\.md$/.exec(path)?.[1];
  return name && `/docs/${name}`;
};

/** Docs shows a page of the documentation that comes with the program. */
export default function Docs() {
  const { path, url } = useLocation();
  const name = /^\/docs\/([\w-]+)\/?$/.exec(path)?.[1] ?? "README";
  const load = useLoad((signal) => readDoc(name, language.value, signal), [name, language.value]);
  const box = useRef<HTMLDivElement>(null);
  const doc = load.data;
  useEffect(() => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (doc && wanted && box.current) return whenDrawn(box.current, doc.section(wanted));
  }, [doc, url]);
  return (
    <Page
      title={doc?.title ?? msg("docs.title")}
      lead={
        <>
          <a href="/docs">{msg("docs.title")}</a>
        </>
      }
    >
      {load.error && <Problem error={load.error} again={() => void load.again()} />}
      {load.busy && !doc && <Waiting />}
      {!load.busy && !load.error && !doc && <p class="note warn">{msg("docs.none", { name })}</p>}
      {doc && (
        <div ref={box}>
          <Markdown text={doc.text} base={doc.base} file={addressOf} level={2} />
        </div>
      )}
    </Page>
  );
}

/** whenDrawn moves to a section as soon as it is drawn. It returns a function that ends the wait. */
function whenDrawn(box: HTMLElement, section: string): () => void {
  const go = () => {
    const heading = [...box.querySelectorAll<HTMLElement>("[data-slug]")].find((h) => h.dataset.slug === section);
    if (!heading) return;
    watch.disconnect();
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "start" });
  };
  const watch = new MutationObserver(go);
  watch.observe(box, { childList: true, subtree: true });
  go();
  return () => watch.disconnect();
}
