import type { Token } from "markdown-it";
import { Fragment, type ComponentChildren, type JSX } from "preact";
import { msg } from "../i18n/messages";
import { Icon } from "../ui";
import { Code } from "./code";
import { Formula } from "./formula";
import { sameOriginURL, slug, linkTarget } from "./links";
import { Mermaid } from "./mermaid";
import { pictureTitle } from "./phrases";
import { Scroll } from "./scrollbox";
import { showHiddenCharacters } from "./visibletext";

/** The options for drawing a text. */
export interface Setting {
  file?: (path: string) => string | undefined;
  base?: string;
  breaks?: boolean;
  /** Returns the level of a heading on the page for its level in the text. */
  level: (written: number) => number;
  /** Whether code blocks with HTML documents and SVG images have previews. */
  previews?: boolean;
  /** Whether the last code block is unfinished. */
  unfinished?: boolean;
}

interface Node {
  token: Token;
  kids: Node[];
}

/**
 * draw turns parsed Markdown into elements. It creates no HTML, so a text can only produce the
 * elements below.
 */
export function draw(tokens: Token[], set: Setting): ComponentChildren {
  return kids(tree(tokens), set);
}

function tree(tokens: Token[]): Node[] {
  const root: Node = { token: tokens[0]!, kids: [] };
  const open = [root];
  for (const token of tokens) {
    if (token.nesting < 0) {
      if (open.length > 1) open.pop();
      continue;
    }
    const node: Node = { token, kids: token.children ? tree(token.children) : [] };
    open.at(-1)!.kids.push(node);
    if (token.nesting > 0) open.push(node);
  }
  return root.kids;
}

const kids = (nodes: Node[], set: Setting): ComponentChildren =>
  nodes.map((n, i) => <Fragment key={i}>{element(n, set)}</Fragment>);

const same: Record<string, keyof JSX.IntrinsicElements> = {
  blockquote_open: "blockquote",
  bullet_list_open: "ul",
  thead_open: "thead",
  tbody_open: "tbody",
  tr_open: "tr",
  strong_open: "strong",
  em_open: "em",
  s_open: "s",
};

function element({ token, kids: nodes }: Node, set: Setting): ComponentChildren {
  const Same = same[token.type] as "ul" | undefined;
  if (Same) return <Same>{kids(nodes, set)}</Same>;
  switch (token.type) {
    case "paragraph_open":
      return token.hidden ? kids(nodes, set) : <p dir="auto">{kids(nodes, set)}</p>;
    case "inline":
      return kids(nodes, set);
    case "heading_open":
      return heading(token, nodes, set);
    case "ordered_list_open":
      return <ol start={Number(token.attrGet("start") ?? 1)}>{kids(nodes, set)}</ol>;
    case "list_item_open":
      return item(nodes, set);
    case "table_open":
      return (
        <Scroll label={msg("content.table")} class="content-table">
          <table>{kids(nodes, set)}</table>
        </Scroll>
      );
    case "th_open":
      return (
        <th scope="col" class={aligned(token)}>
          {kids(nodes, set)}
        </th>
      );
    case "td_open":
      return <td class={aligned(token)}>{kids(nodes, set)}</td>;
    case "fence":
    case "code_block":
      return fence(token, set);
    case "formula":
      return <Formula tex={token.content} source={token.markup} display={token.info === "display"} />;
    case "hr":
      return <hr />;
    case "code_inline":
      return <code>{showHiddenCharacters(token.content)}</code>;
    case "softbreak":
      return set.breaks ? <br /> : "\n";
    case "hardbreak":
      return <br />;
    case "link_open":
      return link(token, nodes, set);
    case "image":
      return picture(token, set, false);
    default:
      return token.content ? showHiddenCharacters(token.content) : kids(nodes, set);
  }
}

const aligned = (token: Token) => /text-align:\s*(center|right)/.exec(String(token.attrGet("style") ?? ""))?.[1];

const words = (nodes: Node[]): string => nodes.map((n) => (n.kids.length ? words(n.kids) : n.token.content)).join("");

function heading(token: Token, nodes: Node[], set: Setting): ComponentChildren {
  const written = Number(token.tag.slice(1));
  const Level = `h${set.level(written)}` as "h3";
  return (
    <Level class={`as-h${written}`} data-slug={slug(words(nodes))} dir="auto">
      {kids(nodes, set)}
    </Level>
  );
}

/** item draws a list item. An item that starts with [ ] or [x] is a task. */
function item(nodes: Node[], set: Setting): ComponentChildren {
  const text = nodes[0]?.kids[0]?.kids[0]?.token;
  const task = text?.type === "text" ? /^\[([ xX])\]\s+/.exec(text.content) : null;
  if (!task || !text) return <li dir="auto">{kids(nodes, set)}</li>;
  const done = task[1] !== " ";
  const rest: Node = {
    ...nodes[0]!.kids[0]!.kids[0]!,
    token: Object.assign(Object.create(text) as Token, { content: text.content.slice(task[0].length) }),
  };
  const line: Node = { ...nodes[0]!.kids[0]!, kids: [rest, ...nodes[0]!.kids[0]!.kids.slice(1)] };
  return (
    <li class="task" dir="auto">
      <input type="checkbox" checked={done} disabled aria-label={done ? msg("content.done") : msg("content.open")} />
      <div>{kids([{ ...nodes[0]!, kids: [line] }, ...nodes.slice(1)], set)}</div>
    </li>
  );
}

function fence(token: Token, set: Setting): ComponentChildren {
  const language = token.info.trim().split(/[\s,{]/)[0] || undefined;
  if (language?.toLowerCase() === "mermaid" && !set.unfinished) return <Mermaid source={token.content} />;
  return (
    <Code
      text={token.content}
      language={language}
      head
      plain={set.unfinished && token.content.length > 8000}
      preview={set.previews && !set.unfinished}
    />
  );
}

function link(token: Token, nodes: Node[], set: Setting): ComponentChildren {
  const to = linkTarget(String(token.attrGet("href") ?? ""), set.base);
  const text = nodes.map((n, i) => (
    <Fragment key={i}>{n.token.type === "image" ? picture(n.token, set, true) : element(n, set)}</Fragment>
  ));
  if (to?.to === "out") return outside(to.href, text);
  if (to?.to === "place")
    return (
      <a href={`#${encodeURIComponent(to.slug)}`} data-to={to.slug}>
        {text}
      </a>
    );
  const address = to && sameOriginURL(set.file?.(to.path));
  if (!address) return <span class="content-nolink">{text}</span>;
  return toFile(address, text);
}

/** toFile links to a file of this hub, within the page if possible. */
function toFile(address: string, text: ComponentChildren) {
  const page = !new URL(address).pathname.startsWith("/api/") && !address.startsWith("blob:");
  return page ? (
    <a href={address}>{text}</a>
  ) : (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {text}
    </a>
  );
}

const outside = (href: string, text: ComponentChildren) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={msg("content.elsewhere") + href}>
    {text}
  </a>
);

/** The files that the hub serves as pictures. It serves SVG as text. */
const shows = /\.(png|jpe?g|gif|webp)$/i;

/** picture shows pictures of this hub. It links to others, because loading them would reveal the reader. */
function picture(token: Token, set: Setting, linked: boolean): ComponentChildren {
  const alt = words(tree(token.children ?? []));
  const to = linkTarget(String(token.attrGet("src") ?? ""), set.base);
  const address = to?.to === "file" ? sameOriginURL(set.file?.(to.path)) : undefined;
  if (address && to?.to === "file" && shows.test(to.path)) return <img src={address} alt={alt} loading="lazy" />;
  const text = (
    <>
      <Icon name="eye" size={14} /> {pictureTitle(alt)}
    </>
  );
  if (linked) return text;
  if (address) return toFile(address, text);
  return to?.to === "out" ? outside(to.href, text) : <span class="content-nolink">{text}</span>;
}
