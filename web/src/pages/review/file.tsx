import { fileOf } from "../../features/skills/skilladdress";
import { useLoad } from "../../shared/api/client";
import { Diff, type LineTools, type Mark } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Shown } from "../../shared/ui";

const pictures = /\.(png|jpe?g|gif|webp|svg)$/i;

/** FileText shows a file of a version: its text with findings and comments, or its picture. */
export function FileText({
  skill,
  version,
  path,
  marks,
  tools,
}: {
  skill: string;
  version: number;
  path: string;
  marks: Mark[];
  tools: LineTools;
}) {
  const address = fileOf(skill, version, path);
  if (pictures.test(path))
    return (
      <>
        <img class="review-picture" src={address} alt={`${msg("review.picture")}: ${path}`} />
        {tools.rest(() => false)}
      </>
    );
  return <Text address={address} path={path} marks={marks} tools={tools} />;
}

/** readText returns the text of a file, or null if it is no text. */
export async function readText(address: string, signal?: AbortSignal): Promise<string | null> {
  const answer = await fetch(address, { signal });
  return answer.ok && answer.headers.get("Content-Type")?.startsWith("text/plain") ? answer.text() : null;
}

function Text({ address, path, marks, tools }: { address: string; path: string; marks: Mark[]; tools: LineTools }) {
  const text = useLoad((signal) => readText(address, signal), [address]);
  return (
    <>
      <Shown asked={text} waiting={msg("review.getFile")}>
        {(t) =>
          t === null ? (
            <p class="small muted review-omitted">
              {msg("review.binary")}{" "}
              <a href={address} download>
                {path}
              </a>
            </p>
          ) : (
            <Diff text={t} path={path} marks={marks} tools={tools} />
          )
        }
      </Shown>
      {!text.busy && typeof text.data !== "string" && tools.rest(() => false)}
    </>
  );
}
