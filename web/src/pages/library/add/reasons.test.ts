import { same, test } from "../../../../test/units/check";
import { loadMessages } from "../../../shared/i18n/messages";
import { reasonOf } from "./reasons";

const said = (code: string, message: string, where = "tides/a") => reasonOf({ where, code, message }).message;

test("reasons: a refused package is explained in the language of the page, with its numbers and names", async () => {
  const large = ["file-too-large", "file too large (12 bytes, limit 10)"] as const;
  same(said(...large), "the file is too large (12 bytes, limit 10)");
  const folder = ["folder-name", 'the folder is named "a" and the archive "b"; give them the same name'] as const;
  same(said(...folder), 'the folder is named "a" and the ZIP "b"; give both the same name');
  await loadMessages("zh-Hans");
  same(said(...large), "文件太大（12 字节，上限 10 字节）");
  same(
    said("several-folders", 'the archive has more than one top folder ("a", "b"); pack one skill'),
    '顶层有多个文件夹（"a"、"b"）；每个压缩包只放一个技能',
  );
  same(said("new-code", "it is new"), "it is new");
  await loadMessages("en");
});
