import { pageOf } from "../../features/skills/skilladdress";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Shown } from "../../shared/ui";
import { titleOf } from "./filter";
import { can, type Looked } from "./opened";
import { loadRequirements } from "./versionfiles";

/** A skill in the graph. */
interface Dot {
  /** The name that other skills require it by. */
  key: string;
  name: string;
  /** The column. Skills that require the shown skill are in column -1. */
  at: number;
  id?: string;
  missing?: boolean;
}

interface Picture {
  dots: Dot[];
  lines: { from: string; to: string; text: string }[];
}

const most = 40;
const deepest = 4;

type Ask = Schema["DiffAsk"];
const needsOf = (of: Schema["SkillDiff"]): Ask[] => of.asks.more.filter((a) => a.kind === "needs");

/** follow loads the skills that a skill requires, as resolved for the user, and those that require it. */
async function follow({ skill }: Looked, first: Schema["SkillDiff"], signal: AbortSignal): Promise<Picture> {
  const dots = new Map<string, Dot>([[skill.name, { key: skill.name, name: titleOf(skill), at: 0, id: skill.id }]]);
  const lines: Picture["lines"] = [];
  let layer = [{ name: skill.name, needs: needsOf(first) }];
  for (let at = 1; at <= deepest && layer.length && dots.size < most; at++) {
    const next = new Set<string>();
    for (const one of layer) {
      for (const n of one.needs.slice(0, most)) {
        lines.push({ from: one.name, to: n.name, text: n.new ?? "" });
        if (!dots.has(n.name)) next.add(n.name);
      }
    }
    layer = (
      await Promise.all(
        [...next].slice(0, most - dots.size).map(async (name) => {
          const found = (
            await got(api.GET("/api/v1/skills/explain", { signal, params: { query: { name } } }))
          ).items.find((c) => c.chosen)?.skill;
          dots.set(name, { key: name, name: found ? titleOf(found) : name, at, id: found?.id, missing: !found });
          return { name, needs: found ? needsOf(await loadRequirements(found.id, found.number, signal)) : [] };
        }),
      )
    ).filter((one) => one.needs.length);
  }
  const users = can(skill, "skill.delete")
    ? await got(api.GET("/api/v1/skills/{skill}/references", { signal, params: { path: { skill: skill.id } } }))
    : undefined;
  for (const r of (users?.seen ?? []).filter((one) => one.kind === "Skill").slice(0, most)) {
    const name = r.name ?? r.id;
    if (!dots.has(name)) dots.set(name, { key: name, name, at: -1, id: r.id });
    if (!lines.some((l) => l.from === name && l.to === skill.name))
      lines.push({ from: name, to: skill.name, text: "" });
  }
  layered(dots, lines);
  return { dots: [...dots.values()], lines };
}

/** layered puts each skill right of all skills that require it. Cycles are cut. */
function layered(dots: Map<string, Dot>, lines: Picture["lines"]) {
  for (let round = 0; round < deepest; round++) {
    for (const l of lines) {
      const [from, to] = [dots.get(l.from), dots.get(l.to)];
      if (from && to && to.at > 0 && to.at <= from.at) to.at = Math.min(from.at + 1, deepest);
    }
  }
}

/** Graph shows the required skills and the requiring skills, from left to right. */
export function Graph({ look, stated: first }: { look: Looked; stated: Schema["SkillDiff"] }) {
  const picture = useLoad((signal) => follow(look, first, signal), [look.skill.id, look.version.number]);
  return (
    <Shown asked={picture} waiting={msg("skill.waitingNeeds")}>
      {(p) => (p.lines.length ? <Drawing picture={p} /> : <p class="muted">{msg("skill.needsNothing")}</p>)}
    </Shown>
  );
}

const box = { width: 180, height: 36, across: 70, down: 14 };

/** Drawing draws the graph, with a list for screen readers. */
function Drawing({ picture }: { picture: Picture }) {
  const columns = [...new Set(picture.dots.map((p) => p.at))].sort((a, b) => a - b);
  const rows = columns.map((at) => picture.dots.filter((p) => p.at === at));
  const high = Math.max(...rows.map((r) => r.length)) * (box.height + box.down) - box.down;
  const places = new Map<string, { x: number; y: number }>();
  rows.forEach((row, column) => {
    const free = high - (row.length * (box.height + box.down) - box.down);
    row.forEach((dot, i) =>
      places.set(dot.key, { x: column * (box.width + box.across), y: free / 2 + i * (box.height + box.down) }),
    );
  });
  const wide = columns.length * (box.width + box.across) - box.across;
  return (
    <>
      <div class="library-scroll across" tabIndex={0} role="region" aria-label={msg("skill.needs")}>
        <svg
          width={wide + 4}
          height={high + 4}
          viewBox={`-2 -2 ${wide + 4} ${high + 4}`}
          class="library-graph"
          aria-hidden="true"
        >
          {picture.lines.map((l) => (
            <Line key={`${l.from} ${l.to}`} from={places.get(l.from)} to={places.get(l.to)} />
          ))}
          {picture.dots.map((dot) => (
            <Box key={dot.key} dot={dot} at={places.get(dot.key)!} />
          ))}
        </svg>
      </div>
      <ul class="small">
        {picture.lines.map((l) => (
          <li key={`${l.from} ${l.to}`}>
            <SkillLink picture={picture} name={l.from} /> {msg("skill.needsWord")}{" "}
            <SkillLink picture={picture} name={l.to} /> <span class="muted">{l.text}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** SkillLink shows a skill name, linked if the skill is known. */
function SkillLink({ picture, name }: { picture: Picture; name: string }) {
  const dot = picture.dots.find((p) => p.key === name);
  if (!dot?.id || dot.at === 0) return <>{dot?.missing ? msg("skill.notThere", { n: name }) : (dot?.name ?? name)}</>;
  return <a href={pageOf(dot.id)}>{dot.name}</a>;
}

interface Point {
  x: number;
  y: number;
}

function Line({ from, to }: { from?: Point; to?: Point }) {
  if (!from || !to) return null;
  const [x1, y1, x2, y2] = [from.x + box.width, from.y + box.height / 2, to.x, to.y + box.height / 2];
  const bend = box.across / 2;
  return (
    <>
      <path class="line" d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 6} ${y2}`} />
      <path class="tip" d={`M${x2} ${y2}l-8 -4v8z`} />
    </>
  );
}

function Box({ dot, at }: { dot: Dot; at: Point }) {
  const text = dot.name.length > 22 ? dot.name.slice(0, 21) + "…" : dot.name;
  const inside = (
    <g
      class={["dot", dot.at === 0 && "here", dot.missing && "missing"].filter(Boolean).join(" ")}
      transform={`translate(${at.x} ${at.y})`}
    >
      <title>{dot.missing ? msg("skill.notThere", { n: dot.name }) : dot.name}</title>
      <rect width={box.width} height={box.height} rx={8} />
      <text x={box.width / 2} y={box.height / 2} dominant-baseline="central" text-anchor="middle">
        {text}
      </text>
    </g>
  );
  return dot.id && dot.at !== 0 ? (
    <a href={pageOf(dot.id)} tabindex={-1}>
      {inside}
    </a>
  ) : (
    inside
  );
}
