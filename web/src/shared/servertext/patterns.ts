/** Patterns of the texts of a refusal. */
export interface ProblemPatterns {
  detail?: RegExp;
  next?: RegExp;
}

/** Patterns for the English texts of refusals, by code. A code with several reasons has one entry for each. */
export const problemPatterns: Record<string, ProblemPatterns[]> = {
  not_found: [{ detail: /^not found/ }],
  provider_denied: [{ detail: /^(.+)$/ }],
  provider: [{ detail: /^(.+)$/ }],
  quota: [
    { detail: /\(storage: (.+) \+ (.+), limit (.+)\)$/ },
    { detail: /\(skills: (.+) \+ .+, limit (.+)\)$/ },
    { detail: /\(conversations: (.+) \+ .+, limit (.+)\)$/ },
  ],
  scope: [{ detail: /needs scope (.+)$/, next: /with the scope (.+)$/ }],
  forbidden: [{ detail: /^([\w.]+): permission denied/ }],
  too_often: [{ detail: /try again in (\d+) s$/, next: /wait for (\d+) s/ }],
  exists: [
    { detail: /^a skill with this name already exists$/ },
    { detail: /^a version with these files exists already$/ },
    { detail: /^an item with this name already exists$/ },
  ],
  changed: [
    { detail: /^the files differ from those that you reviewed$/ },
    { detail: /^another user changed it in the meantime$/ },
  ],
  files_missing: [{ detail: /: (.+)\. The hub keeps up to (\d+) .+ \((\d+) MiB\)\.$/ }],
  image_gone: [{ detail: /^image "(.*)": / }],
  image_type: [{ detail: /^image "(.*)": / }],
  image_size: [{ detail: /^image "(.*)": too large/ }],
  image_pixels: [{ detail: /^image "(.*)": (\d+ × \d+) pixels, limit (\d+ × \d+)$/ }],
  no_model: [{ detail: /^Model (".*") not found/ }],
  model_key: [{ detail: /^the API key of Model (".*") is missing$/ }],
  in_use: [{ detail: /^(.+)$/ }],
  SKILL_REFERENCED: [{ detail: /^skill (".*?") is in use/ }],
  too_many: [{ detail: /^(.+)$/ }],
  too_many_comments: [
    { detail: /of yours on version (\d+) \(\d+, limit (\d+)\)$/ },
    { detail: /on version (\d+) \(\d+, limit (\d+)\)$/ },
  ],
  too_large: [{ detail: /package too large \(limit (\d+) bytes\)/ }, { detail: /^the request is too large/ }],
  signin_denied: [{ detail: /^sign-in denied: (.+)$/ }],
  signin_address: [{ detail: /^(?:.*: )?(\S+) has no public address/ }],
  signin_failed: [{ detail: /^(.+)$/ }],
  not_reviewed: [
    { detail: /code of skill (".*?") was rejected in review: (.+)$/ },
    { detail: /code of skill (".*?")/ },
  ],
  bad_name: [{ detail: /cannot be named (".*?") here/ }],
  invalid: [{ detail: /^the request is invalid$/ }, { detail: /^a value cannot be stored/ }],
  source_invalid: [{ detail: /^invalid location (".*?")/ }, { detail: /^(.+)$/ }],
  source_not_found: [{ detail: /^(.+)$/, next: /still exists(.*)$/ }],
  source_denied: [{ detail: /^(.+)$/ }],
  source_address: [{ detail: /^(.+)$/ }],
  source_too_large: [{ detail: /^(.+)$/ }],
  source_digest: [{ detail: /^(.+)$/ }],
  source_failed: [{ detail: /^(.+)$/ }],
  no_key: [{ detail: /^(.+)$/ }],
  server: [{ detail: /^(.+)$/ }],
  model_exists: [{ detail: /^all users already have the model (.+) at (.+)$/ }],
  model_address: [{ detail: /^the address is not public/ }],
  model: [{ detail: /^the model cannot be used: ([\s\S]+)$/ }],
  model_key_rejected: [{ detail: /^the server rejected the API key: ([\s\S]+)$/ }],
  model_unreachable: [{ detail: /^the server cannot be reached: ([\s\S]+)$/ }],
  model_list: [{ detail: /^the server did not list its models: ([\s\S]+)$/ }],
};
