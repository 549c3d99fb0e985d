import codes from "../../../../skill/testdata/codes.json";
import { holds, same, test } from "../../../test/units/check";
import { loadMessages, messagesOf } from "../i18n/messages";
import { diagnosticPatterns } from "./diagnosticpatterns";
import { loadDiagnosticPatterns, loadProblemPatterns, translateDiagnostic, translateProblem } from ".";

/** inChinese runs a test with the page in Chinese. */
async function inChinese(run: () => void) {
  await loadMessages("zh-Hans");
  await Promise.all([loadDiagnosticPatterns(), loadProblemPatterns()]);
  try {
    run();
  } finally {
    await loadMessages("en");
  }
}

test("server texts: exactly the diagnostic codes have Chinese texts", () =>
  inChinese(() => {
    const texts = new Map(messagesOf("diagnostic"));
    const known = [...texts.keys()].filter((k) => k.endsWith(".message")).map((k) => k.slice(0, -".message".length));
    same(known.sort(), [...codes].sort());
    for (const code of codes)
      for (const part of ["message", "fix"])
        holds(/[\u4e00-\u9fff]/.test(texts.get(`${code}.${part}`) ?? ""), `${code}.${part}`);
    same(
      Object.keys(diagnosticPatterns).filter((code) => !codes.includes(code)),
      [],
    );
  }));

test("server texts: translations keep names and numbers of a diagnostic", () =>
  inChinese(() => {
    const said = (code: string, message: string, fix: string) => {
      const d = translateDiagnostic({ code, message, fix });
      return [d.message, d.fix];
    };
    same(said("name-case", "Skill name 'Tides' must be lowercase", "name it tides"), [
      "技能名 'Tides' 必须是小写",
      "改名为 tides",
    ]);
    same(
      said(
        "name-missing",
        'Missing required field in frontmatter: name; it loads under its folder\'s name "tides"',
        "add the line name: tides",
      ),
      ['前置元数据缺少必需的字段 name；以文件夹名 "tides" 加载', "添加 name: tides 一行"],
    );
    same(
      said("body-tokens", "the instructions have about 7000 tokens, more than 5000", "move")[0],
      "指令约有 7000 个词元，超过 5000",
    );
    same(
      said(
        "name-missing",
        "Missing required field in frontmatter: name",
        "add a line name: with a name of lowercase letters, digits and hyphens",
      ),
      ["前置元数据缺少必需的字段 name", "添加 name: 一行"],
    );
  }));

test("server texts: a text without a translation stays English", () =>
  inChinese(() => {
    const unknown = { code: "new-thing", message: "it is new", fix: "wait", detail: "it is new" };
    same(translateDiagnostic(unknown), unknown);
    same(translateProblem(unknown), unknown);
    same(translateProblem({ code: "exists", detail: "of another kind", next: "look" }), {
      code: "exists",
      detail: "of another kind",
      next: "look",
    });
  }));

test("server texts: translations keep names and numbers of a refusal", () =>
  inChinese(() => {
    same(
      translateProblem({ code: "too_often", detail: "too many requests; try again in 30 s", next: "wait for 30 s" }),
      {
        code: "too_often",
        detail: "操作太频繁，请在 30 秒后再试",
        next: "等待 30 秒",
      },
    );
    same(
      ["storage: 29.7 MB + 9.9 MB, limit 30.0 MB", "skills: 9 + 1, limit 9", "conversations: 2 + 1, limit 2"].map(
        (what) => translateProblem({ code: "quota", detail: `quota of the user exceeded (${what})` }).detail,
      ),
      [
        "存储空间已达上限：已存储 29.7 MB，还需要 9.9 MB，上限 30.0 MB",
        "技能数量已达上限：已有 9 个，上限 9 个",
        "对话数量已达上限：已有 2 个，上限 2 个",
      ],
    );
    same(
      translateProblem({
        code: "image_pixels",
        detail: 'image "a.png": 8001 × 1 pixels, limit 8000 × 8000',
        next: "remove the image from the message, or attach another one",
      }),
      {
        code: "image_pixels",
        detail: "图片 a.png 太大：8001 × 1 像素，上限 8000 × 8000",
        next: "从消息中移除该图片，或添加另一张",
      },
    );
    same(
      translateProblem({
        code: "files_missing",
        detail: "Files missing on this branch: a.csv, b/c.md. The hub keeps up to 500 earlier versions (64 MiB).",
      }).detail,
      "此分支缺少文件：a.csv, b/c.md。中心最多保留 500 个较早版本（64 MiB）。",
    );
    same(
      translateProblem({ code: "wrong_password", detail: "wrong name or password", next: "try again" }).detail,
      "用户名或密码错误",
    );
  }));
