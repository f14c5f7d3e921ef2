/** Escaped markup. Only the function `html` creates it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Values in a page. Text is escaped. `false` and `undefined` produce no output. */
export type Content = Html | string | number | false | undefined | readonly Content[];

/** Creates a page or a part of a page. Attributes must be in double quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(parts.map((part, i) => part + render(values[i])).join(""));
}

function render(content: Content): string {
  if (content === undefined || content === false) return "";
  if (content instanceof Html) return content.text;
  if (typeof content === "object") return content.map(render).join("");
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
