import { useAsked } from "../api/client";
import { Code, type Mark } from "../content";
import { fileOf } from "../library/address";
import { Shown } from "../ui";
import { w } from "./words";

const pictures = /\.(png|jpe?g|gif|webp|svg)$/i;

/** A file of a version: its text with what was found, or its picture. */
export function FileText({ skill, version, path, marks }: { skill: string; version: number; path: string; marks: Mark[] }) {
  const address = fileOf(skill, version, path);
  if (pictures.test(path)) return <img class="review-picture" src={address} alt={`${w().picture}: ${path}`} />;
  return <Text address={address} path={path} marks={marks} />;
}

function Text({ address, path, marks }: { address: string; path: string; marks: Mark[] }) {
  const text = useAsked(async (signal) => {
    const answer = await fetch(address, { signal });
    return answer.ok && answer.headers.get("Content-Type")?.startsWith("text/plain") ? answer.text() : null;
  }, [address]);
  return <Shown asked={text} waiting={w().getFile}>{(t) => (t === null ? <p class="small muted review-omitted">{w().binary} <a href={address} download>{path}</a></p> : <Code text={t} path={path} numbers marks={marks} height="40rem" />)}</Shown>;
}
