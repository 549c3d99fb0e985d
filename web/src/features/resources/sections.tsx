import type { ComponentChildren } from "preact";
import { AgentServers } from "./agentservers";
import { BotBasis } from "./bot";
import { Connect } from "./connect";
import type { Kind, ResourceRef, Selection } from "./document";
import type { PartProps } from "./editorprops";
import { Instructions, ToolRules } from "./ghost";
import { ModelBasis } from "./model";
import { Raw } from "./raw";
import { ServerBasis } from "./server";
import { Skills } from "./skills";
import { Members } from "./team";

type SectionId = "basis" | "skills" | "servers" | "rules" | "connect" | "document";
type Props = PartProps & { onSaved: (place: ResourceRef) => void };

interface Section {
  id: SectionId;
  draw: (part: Props) => ComponentChildren;
}

const skills = (besides: boolean): Section => ({
  id: "skills",
  draw: (p) => <Skills value={p.draft.doc.spec as Selection} onChange={p.draft.spec} besides={besides} />,
});
const servers: Section = { id: "servers", draw: (p) => <AgentServers {...p} /> };
const raw: Section = { id: "document", draw: (p) => <Raw {...p} onSaved={() => p.place && p.onSaved(p.place)} /> };

const sections: Record<Kind, Section[]> = {
  Ghost: [
    { id: "basis", draw: (p) => <Instructions {...p} /> },
    skills(false),
    servers,
    { id: "rules", draw: (p) => <ToolRules {...p} /> },
    { id: "connect", draw: (p) => <Connect {...p} /> },
    raw,
  ],
  Bot: [{ id: "basis", draw: (p) => <BotBasis {...p} /> }, skills(true), servers, raw],
  Team: [{ id: "basis", draw: (p) => <Members {...p} /> }, raw],
  Model: [{ id: "basis", draw: (p) => <ModelBasis {...p} /> }, raw],
  MCPServer: [{ id: "basis", draw: (p) => <ServerBasis {...p} /> }, raw],
};

/**
 * sectionsOf returns the editor sections of a kind. A new resource has no address and no raw
 * document yet.
 */
export const sectionsOf = (kind: Kind, fresh: boolean) =>
  sections[kind].filter((s) => !fresh || (s.id !== "connect" && s.id !== "document"));
