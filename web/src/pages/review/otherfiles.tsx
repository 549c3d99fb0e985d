import { fileOf } from "../../features/skills/skilladdress";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";
import { useDiscussion } from "./discussion";
import { FileBox } from "./filebox";
import { FileThreads } from "./linecomments";
import type { Loaded } from "./loaded";

/** OtherFiles shows the comments on the files that are not shown above. from is the number of the compared version. */
export function OtherFiles({ all, from, shown }: { all: Loaded; from: number; shown: string[] }) {
  const { threads, drafts } = useDiscussion();
  const positions = [...threads, ...drafts.positions()];
  const paths = new Set(positions.map((p) => p.path).filter((p) => p !== undefined));
  for (const path of shown) paths.delete(path);
  if (!paths.size) return null;
  return (
    <section class="stack" aria-labelledby="review-others">
      <h2 id="review-others">{msg("review.otherFiles")}</h2>
      {[...paths].sort().map((path) => (
        <OtherFile key={path} all={all} from={from} path={path} />
      ))}
    </section>
  );
}

function OtherFile({ all: { skill, version, manifest }, from, path }: { all: Loaded; from: number; path: string }) {
  const { threads } = useDiscussion();
  const exists = manifest.files.some((f) => f.path === path);
  const last = Math.max(...threads.filter((t) => t.path === path).map((t) => t.base ?? t.version), 0);
  const number = exists ? version.number : last;
  return (
    <FileBox path={path} facts={<Tag>{msg(exists ? "review.unchanged" : "review.notInVersion")}</Tag>} open>
      {number > 0 && (
        <p class="small review-omitted">
          <a href={fileOf(skill.id, number, path)} target="_blank">
            {msg("review.openFile", { n: number })}
          </a>
        </p>
      )}
      <FileThreads
        path={path}
        number={version.number}
        base={from}
        lines={() => false}
        file={exists ? { path } : undefined}
      />
    </FileBox>
  );
}
