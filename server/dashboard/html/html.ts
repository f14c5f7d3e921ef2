/** Markup in which all values are escaped. Only the function `html` may create an instance. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The values that a page may contain. Text is escaped. `false` and `undefined` produce no output. */
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
