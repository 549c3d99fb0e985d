// Combinations of window size, colour scheme and language.
const sizes = [
  [360, 740],
  [768, 1024],
  [1440, 900],
  [1920, 1080],
];

/** views returns the named combinations, or all if LOADOUT_TEST_VIEWS is "all". */
export function views(...names) {
  const all = sizes.flatMap(([width, height]) =>
    ["light", "dark"].flatMap((scheme) =>
      ["en-US", "zh-CN"].map((language) => ({
        name: `${width}-${scheme}-${language}`,
        width,
        height,
        scheme,
        language,
      })),
    ),
  );
  return all.filter((view) => process.env.LOADOUT_TEST_VIEWS === "all" || names.includes(view.name));
}
