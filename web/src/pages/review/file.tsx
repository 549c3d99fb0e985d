import { fileOf } from "../../features/skills/skilladdress";
import { useLoad } from "../../shared/api/client";
import { Code, type Mark } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Shown } from "../../shared/ui";

const pictures = /\.(png|jpe?g|gif|webp|svg)$/i;

/** FileText shows a file of a version: its text with findings, or its picture. */
export function FileText({
  skill,
  version,
  path,
  marks,
}: {
  skill: string;
  version: number;
  path: string;
  marks: Mark[];
}) {
  const address = fileOf(skill, version, path);
  if (pictures.test(path))
    return <img class="review-picture" src={address} alt={`${msg("review.picture")}: ${path}`} />;
  return <Text address={address} path={path} marks={marks} />;
}

function Text({ address, path, marks }: { address: string; path: string; marks: Mark[] }) {
  const text = useLoad(
    async (signal) => {
      const answer = await fetch(address, { signal });
      return answer.ok && answer.headers.get("Content-Type")?.startsWith("text/plain") ? answer.text() : null;
    },
    [address],
  );
  return (
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
          <Code text={t} path={path} numbers marks={marks} height="40rem" />
        )
      }
    </Shown>
  );
}
