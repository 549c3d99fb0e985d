import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { size } from "../i18n/format";
import { msg } from "../i18n/messages";
import { Button } from "../ui";
import { still } from "./stillpage";
import "./preview.css";

/** The size limit of a document with a preview. */
const largest = 1 << 20;

interface PreviewProps {
  text: string;
  kind: "html" | "svg";
  /** What is shown, such as the path of a file. */
  name: string;
}

/**
 * Preview shows an HTML document or an SVG image of a model or a user. Nothing of it can reach the
 * page, the hub or any other address. The scripts of a document run only if the user starts them.
 */
export default function Preview({ text, kind, name }: PreviewProps) {
  const [large, setLarge] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useLarge(box, large);
  const bytes = useMemo(() => new Blob([text]).size, [text]);
  if (bytes > largest)
    return <p class="content-preview small muted">{msg("preview.tooLarge", { most: size(largest) })}</p>;
  const shown = kind === "svg" ? <Picture text={text} name={name} /> : <Page text={text} name={name} />;
  const key = (e: KeyboardEvent) => {
    if (!large) return;
    e.stopPropagation(); // the page is behind it
    if (e.key !== "Escape") return;
    e.preventDefault();
    setLarge(false);
  };
  const modal = large && { role: "dialog" as const, "aria-modal": true, "aria-label": msg("preview.of", { name }) };
  return (
    <div ref={box} class={large ? "content-preview large" : "content-preview"} tabIndex={-1} onKeyDown={key} {...modal}>
      {shown}
      <div class="row bar">
        <Button small look="quiet" icon={large ? "close" : "zoom"} onClick={() => setLarge(!large)}>
          {large ? msg("preview.reduce") : msg("preview.enlarge")}
        </Button>
      </div>
    </div>
  );
}

/**
 * useLarge shows an element in front of the page and keeps the focus in it. The element stays where it is in the
 * document: a frame that is moved loads its document again, and its scripts end.
 */
function useLarge(box: { current: HTMLElement | null }, large: boolean) {
  useLayoutEffect(() => {
    const e = box.current;
    if (!e || !large) return;
    e.popover = "manual";
    e.showPopover();
    const keep = (event: FocusEvent) => e.contains(event.target as Node) || e.focus();
    document.addEventListener("focusin", keep);
    return () => {
      document.removeEventListener("focusin", keep);
      e.hidePopover();
      e.popover = null;
    };
  }, [large]);
}

/** Picture shows an SVG image as browsers show images: without scripts, links and other files. */
function Picture({ text, name }: { text: string; name: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  return <img src={address} alt={msg("preview.of", { name })} />;
}

/** Page shows an HTML document, at first without its scripts. */
function Page({ text, name }: { text: string; name: string }) {
  const [running, setRunning] = useState(false);
  const content = useMemo(() => still(text), [text]);
  const label = msg("preview.of", { name });
  return (
    <>
      {running ? (
        <Running document={content.page} label={label} />
      ) : (
        <iframe class="frame" sandbox="" srcdoc={content.page} title={label} />
      )}
      {content.scripts && (
        <div class="row warning">
          <span class="grow small">{msg("preview.warning")}</span>
          <Button small icon={running ? "stop" : "play"} onClick={() => setRunning(!running)}>
            {running ? msg("preview.stop") : msg("preview.run")}
          </Button>
        </div>
      )}
    </>
  );
}

/** Running shows a document with its scripts, which end with it. */
function Running({ document, label }: { document: string; label: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const begin = (e: MessageEvent) => {
      if (!frame.current || e.source !== frame.current.contentWindow) return;
      removeEventListener("message", begin); // the scripts of the document may send more
      frame.current.contentWindow?.postMessage(document, "*"); // its origin has no name
    };
    addEventListener("message", begin);
    return () => removeEventListener("message", begin);
  }, [document]);
  return <iframe key={document} ref={frame} class="frame" sandbox="allow-scripts" src="/preview.html" title={label} />;
}
