/**
 * Returns a program that sends the request. The program reads the API key from the environment, because the
 * page has no key.
 * @param mediaType the media type of the selected format.
 */
export function asCode(kind, origin, fields, mediaType) {
  const { audioFormat = "wav", ...rest } = fields;
  const request =
    audioFormat === "ogg" && rest.samplingRate === undefined ? { ...rest, samplingRate: 24000 } : rest;
  return writers[kind](`${origin}/v1/svc-tts`, request, mediaType, `speech.${audioFormat}`);
}

const writers = {
  curl: (url, fields, type, file) =>
    [
      `curl -sS ${url} \\`,
      `  -H "Authorization: Bearer $SVC_TTS_API_KEY" \\`,
      `  -H 'Content-Type: application/json' -H 'Accept: ${type}' \\`,
      `  -d ${quoted(JSON.stringify(fields))} -o ${file}`,
    ].join("\n"),
  python: (url, fields, type, file) =>
    [
      "import json, os, urllib.request",
      "",
      `fields = json.loads(${JSON.stringify(JSON.stringify(fields))})`,
      "request = urllib.request.Request(",
      `    "${url}",`,
      "    json.dumps(fields).encode(),",
      `    {"Authorization": f"Bearer {os.environ['SVC_TTS_API_KEY']}",`,
      `     "Content-Type": "application/json", "Accept": "${type}"},`,
      ")",
      `with urllib.request.urlopen(request) as answer, open("${file}", "wb") as file:`,
      "    file.write(answer.read())",
    ].join("\n"),
  javascript: (url, fields, type, file) =>
    [
      `import { writeFile } from "node:fs/promises";`,
      "",
      `const answer = await fetch("${url}", {`,
      `  method: "POST",`,
      "  headers: {",
      `    Authorization: "Bearer " + process.env.SVC_TTS_API_KEY,`,
      `    "Content-Type": "application/json",`,
      `    Accept: "${type}",`,
      "  },",
      `  body: JSON.stringify(${JSON.stringify(fields, null, 2).replaceAll("\n", "\n  ")}),`,
      "});",
      `await writeFile("${file}", Buffer.from(await answer.arrayBuffer()));`,
    ].join("\n"),
};

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
