import { same, test } from "../../../../test/units/check";
import { packagesOf } from "./pack";

const file = (name: string) => new File(["---\nname: tides\n---\n"], name);

test("packages: a SKILL.md is a skill by itself, also after a second download", async () => {
  const names = async (name: string) => (await packagesOf([file(name)])).map((p) => [p.name, p.folder]);
  for (const name of ["SKILL.md", "SKILL (1).md", "skill.md"]) same(await names(name), [["tides.zip", true]], name);
  for (const name of ["tides.zip", "MY-SKILL.md"]) same(await names(name), [[name, false]], name);
});
