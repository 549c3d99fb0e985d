import { holds, same, test } from "../../test/units/check";
import codes from "../../../skill/testdata/codes.json";
import { diagnostic, diagnostics, problem } from "./zh";

test("told: there is a Chinese text for every code of a diagnostic, and for none besides", () => {
  same(Object.keys(diagnostics).sort(), [...codes].sort());
  for (const code of codes) holds(diagnostics[code]!.every((text) => /[\u4e00-\u9fff]/.test(String(text))), code);
});

test("told: names and numbers of a diagnostic stay", () => {
  const said = (code: string, message: string, fix: string) => {
    const told = diagnostic({ code, message, fix });
    return [told.message, told.fix];
  };
  same(said("name-case", "Skill name 'Tides' must be lowercase", "name it tides"), ["技能名 'Tides' 必须是小写", "改名为 tides"]);
  same(said("name-missing", 'Missing required field in frontmatter: name; it is loaded under its folder\'s name "tides"', "add the line name: tides"), ['前置元数据缺少必需的字段 name；以文件夹名 "tides" 加载', "添加 name: tides 一行"]);
  same(said("body-tokens", "the instructions have about 7000 tokens, more than 5000", "move")[0], "说明约有 7000 个词元，超过 5000");
  same(said("name-missing", "Missing required field in frontmatter: name", "add a line name: with a name of lowercase letters, digits and hyphens"), ["前置元数据缺少必需的字段 name", "添加 name: 一行"]);
});

test("told: what has no Chinese text stays English", () => {
  const unknown = { code: "new-thing", message: "it is new", fix: "wait", detail: "it is new" };
  same(diagnostic(unknown), unknown);
  same(problem(unknown), unknown);
  same(problem({ code: "exists", detail: "of another kind", next: "look" }), { code: "exists", detail: "of another kind", next: "look" });
});

test("told: a refusal keeps what it is about", () => {
  same(problem({ code: "too_often", detail: "too often; try again in 30s", next: "wait for 30 s" }), { code: "too_often", detail: "操作太频繁，请在 30s 后再试", next: "等待 30 秒" });
  same(problem({ code: "wrong_password", detail: "the name or the password is wrong", next: "try again" }).detail, "用户名或密码错误");
});
