import type { LicenseVerdict } from "../../../config/contract/license.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import type { PhonemesProblem } from "../../contract/text/phonemes.ts";
import type { PlsFault, SoundsFault } from "../../text/pls/faults.ts";

export const phonemesProblems: Record<PhonemesProblem, string> = {
  "a stress digit must be followed by a vowel": "auf eine Betonungsziffer muss ein Vokal folgen",
  "this character is not in the phonetic alphabet": "dieses Zeichen gehört nicht zum Lautalphabet",
  "the braces are empty": "zwischen den Klammern steht nichts",
};

export const failureMessages: Record<ErrorCode, string> = {
  malformed_http: "Die Anfrage ist kein gültiges HTTP.",
  malformed_json: "Die Anfrage ist kein JSON in UTF-8.",
  invalid_request: "Eine Angabe ist ungültig; prüfen Sie, was Sie eingegeben haben.",
  unauthorized: "Sie sind nicht mehr angemeldet; melden Sie sich erneut an.",
  insufficient_scope: "Dazu fehlt Ihnen die Berechtigung.",
  cross_site: "Dieses Formular kam von einer anderen Website; öffnen Sie das Dashboard selbst.",
  license_required: "Die Lizenz erlaubt diese Sprachausgabe nicht; ihr Stand steht auf der Seite Nutzung.",
  not_found: "Das gibt es hier nicht, oder nicht mehr; laden Sie die Seite neu.",
  method_not_allowed: "Diese Adresse nimmt eine solche Anfrage nicht an.",
  not_acceptable: "Keines der gewünschten Formate wird angeboten.",
  name_taken: "Einen API-Schlüssel mit diesem Namen gibt es bereits; wählen Sie einen anderen Namen.",
  request_timeout: "Die Anfrage kam nicht vollständig an; versuchen Sie es noch einmal.",
  body_too_large: "Die Anfrage ist zu groß; senden Sie weniger auf einmal.",
  audio_too_large: "Die Aufnahme ist für eine einzige Antwort zu lang; kürzen Sie den Text.",
  unsupported_media_type: "Diese Art von Inhalt wird hier nicht angenommen.",
  upgrade_required: "Unter diesem Pfad gibt es nur WebSockets.",
  headers_too_large: "Der Browser hat zu große Kopfzeilen gesendet.",
  rate_limited:
    "Das waren zu viele Anfragen in einer Minute; warten Sie kurz und versuchen Sie es noch einmal.",
  too_many_sockets: "Mit diesem Schlüssel sind zu viele WebSockets offen.",
  too_many_streams:
    "Es laufen bereits so viele Ausgaben, wie Sie zugleich haben dürfen; warten Sie, bis eine endet.",
  internal:
    "Hier ist etwas schiefgegangen; versuchen Sie es noch einmal oder fragen Sie, wer den Server betreibt.",
  model_failed: "Das Modell ist beim Sprechen gescheitert; versuchen Sie es noch einmal.",
  saturated: "Alle Plätze sind gerade belegt; versuchen Sie es gleich noch einmal.",
  overloaded: "Der Server ist gerade ausgelastet; versuchen Sie es gleich noch einmal.",
  draining: "Dieser Server wird gerade beendet; versuchen Sie es noch einmal, dann antwortet ein anderer.",
  model_starting: "Das Modell wird gerade gestartet; versuchen Sie es gleich noch einmal.",
  model_unreachable: "Das Modell ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.",
  store_unavailable: "Die Datenbank ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.",
  deadline_exceeded: "Das Modell hat nicht rechtzeitig geantwortet; versuchen Sie es noch einmal.",
};

export const speechRuleMessages: Readonly<Record<string, string>> = {
  "/text":
    "Der Text ist leer oder enthält eine Pause oder Lautschrift in Klammern, die nicht gelesen werden kann. Eine Pause dauert höchstens 60.000 ms, alle zusammen höchstens 600.000 ms, und in geschweiften Klammern steht das Lautalphabet.",
  "/speaker": "Diese Stimme spricht das gewählte Modell nicht; wählen Sie eine andere.",
  "/modelId": "Dieses Modell gibt es hier nicht; wählen Sie ein anderes.",
  "/lang": "Diese Sprache spricht die gewählte Stimme nicht.",
  "/samplingRate":
    "Diese Abtastrate gibt es mit dem gewählten Modell und Format nicht; lassen Sie das Feld leer.",
  "/speedAlpha": "Diese Sprechgeschwindigkeit ist hier nicht erlaubt; setzen Sie sie auf 1.",
  "/inlineSpeedAlpha":
    "Geben Sie die Geschwindigkeiten als Zahlen mit Dezimalpunkt und Kommas dazwischen an, etwa 0.5, 1.2, und zwar eine für jedes Wort in eckigen Klammern.",
  "/repetition_penalty": "repetition_penalty liegt außerhalb des Erlaubten.",
  "/temperature": "temperature liegt außerhalb des Erlaubten.",
  "/top_p": "top_p liegt außerhalb des Erlaubten.",
  "/max_tokens": "Für max_tokens ist eine ganze Zahl von 200 bis 5000 erlaubt.",
};

export const licenseMessages = ({ state, cause, claims }: LicenseVerdict): string => {
  if (cause === "revoked")
    return "Die Lizenz wurde vom Aussteller widerrufen. Fordern Sie eine neue an und aktualisieren Sie das Secret der Lizenz.";
  if (cause === "unconfirmed")
    return "Der Aussteller der Lizenz konnte nicht befragt werden. Sorgen Sie dafür, dass die API-Pods license.endpoint erreichen.";
  if (state === "missing") return "Es wurde keine Lizenz gefunden; legen Sie das Secret der Lizenz an.";
  if (state === "invalid")
    return claims
      ? "Die Lizenz gilt noch nicht; warten Sie bis zu ihrem Beginn oder prüfen Sie die Uhr dieses Rechners."
      : "Die Lizenz ist nicht lesbar oder nicht echt; fordern Sie eine neue an.";
  if (state === "grace" && !claims)
    return "Die Lizenz fehlt oder ist nicht mehr gültig; hinterlegen Sie wieder eine gültige.";
  return "Die Lizenz ist abgelaufen. Verlängern Sie sie und aktualisieren Sie das Secret der Lizenz.";
};

const soundFaultMessages = (fault: SoundsFault): string => {
  switch (fault.kind) {
    case "long":
      return `${fault.length} Zeichen sind zu viele, erlaubt sind ${fault.most}`;
    case "alphabet":
      return `als Alphabet ist nur ${fault.allowed.join(" oder ")} erlaubt`;
    case "no-sound":
      return `für das Zeichen ${fault.sign} gibt es im Lautalphabet keinen Laut`;
    case "stress-mark":
      return "auf ein Betonungszeichen muss eine Silbe folgen";
    case "empty":
      return "es steht nichts darin";
    case "written":
      return phonemesProblems[fault.problem];
  }
};

export const plsFaultMessages = (fault: PlsFault): string => {
  switch (fault.kind) {
    case "xml":
      return `Ab etwa Spalte ${fault.column} lässt sich das nicht als XML lesen.`;
    case "encoding":
      return `Die Datei muss in UTF-8 vorliegen; angegeben ist ${fault.encoding}.`;
    case "not-utf-8":
      return "Die Datei muss in UTF-8 vorliegen und tut es nicht.";
    case "doctype":
      return "Ein Dokumenttyp (<!DOCTYPE …>) wird nicht gelesen, eigene Entitäten ebenso wenig; entfernen Sie ihn.";
    case "deep":
      return `Elemente dürfen höchstens ${fault.most} Ebenen tief ineinander stehen.`;
    case "root":
      return `Die Datei muss mit <lexicon version="1.0" xmlns="${fault.namespace}" …> beginnen.`;
    case "version":
      return 'Im Wörterbuch muss version="1.0" stehen.';
    case "alphabet":
      return `Als Alphabet des Wörterbuchs ist nur ${fault.allowed.join(" oder ")} erlaubt.`;
    case "language":
      return "xml:lang muss eine Sprache nennen, die eine Stimme spricht, etwa en oder en-US.";
    case "misplaced":
      return `<${fault.element}> darf nicht in <${fault.parent}> stehen.`;
    case "no-grapheme":
      return "Ein <lexeme> braucht ein <grapheme>.";
    case "no-phoneme":
      return "Ein <lexeme> braucht ein <phoneme>; ein <alias> kann nicht übernommen werden.";
    case "phoneme":
      return `Die Aussprache ${fault.text}: ${soundFaultMessages(fault.why)}.`;
    case "grapheme":
      return `Die Schreibweise ${fault.text}: Ein Wort hat 1 bis 60 Buchstaben, mit Bindestrichen und Apostrophen dazwischen.`;
    case "twice":
      return `${fault.text} steht mit anderen Lauten bereits in Zeile ${fault.line}.`;
    case "full":
      return `Ein Wörterbuch hat höchstens ${fault.most} Wörter.`;
  }
};
