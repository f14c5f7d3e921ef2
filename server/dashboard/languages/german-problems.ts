import type { LicenseVerdict } from "../../../config/contract/license.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import type { PhonemesProblem } from "../../contract/text/phonemes.ts";
import type { PlsFault, SoundsFault } from "../../text/pls/faults.ts";

export const phonemesProblems: Record<PhonemesProblem, string> = {
  "a stress digit must be followed by a vowel": "auf eine Betonungsziffer muss ein Vokal folgen",
  "this character is not in the phonetic alphabet": "dieses Zeichen gehört nicht zum Lautalphabet",
  "the braces are empty": "die Klammern sind leer",
};

export const failureMessages: Record<ErrorCode, string> = {
  malformed_http: "Die Anfrage ist kein gültiges HTTP.",
  malformed_json: "Die Anfrage ist kein JSON in UTF-8.",
  invalid_request: "Eine Angabe ist ungültig; prüfen Sie Ihre Eingabe.",
  unauthorized: "Sie sind nicht mehr angemeldet; melden Sie sich erneut an.",
  insufficient_scope: "Ihnen fehlt die Berechtigung für diese Aktion.",
  cross_site: "Eine andere Website hat dieses Formular gesendet; öffnen Sie das Dashboard.",
  license_required: "Die Lizenz erlaubt diese Sprachausgabe nicht; die Seite Nutzung zeigt ihren Zustand.",
  not_found: "Die Seite oder das Objekt gibt es nicht oder nicht mehr; laden Sie die Seite neu.",
  method_not_allowed: "Diese Adresse unterstützt diese Methode nicht.",
  not_acceptable: "Der Server unterstützt keines der gewünschten Formate.",
  name_taken: "Einen API-Schlüssel mit diesem Namen gibt es bereits; wählen Sie einen anderen Namen.",
  request_timeout: "Die Anfrage kam nicht vollständig an; versuchen Sie es noch einmal.",
  body_too_large: "Die Anfrage ist zu groß; senden Sie weniger auf einmal.",
  audio_too_large: "Die Aufnahme ist für eine einzige Antwort zu lang; kürzen Sie den Text.",
  unsupported_media_type: "Der Server unterstützt diese Art von Inhalt nicht.",
  upgrade_required: "Unter diesem Pfad gibt es nur WebSockets.",
  headers_too_large: "Der Browser hat zu große Kopfzeilen gesendet.",
  rate_limited:
    "Das waren zu viele Anfragen in einer Minute; warten Sie kurz und versuchen Sie es noch einmal.",
  too_many_sockets: "Mit diesem Schlüssel sind zu viele WebSockets offen.",
  too_many_streams:
    "Es laufen bereits so viele Ausgaben, wie Sie zugleich haben dürfen; warten Sie, bis eine endet.",
  internal:
    "Im Server ist ein unerwarteter Fehler aufgetreten; versuchen Sie es noch einmal, oder wenden Sie sich an den Administrator.",
  model_failed: "Das Modell ist bei der Sprachausgabe ausgefallen; versuchen Sie es noch einmal.",
  saturated: "Die Kapazität des Modells ist ausgelastet; versuchen Sie es gleich noch einmal.",
  overloaded: "Der Speicher für große Anfragen ist belegt; versuchen Sie es gleich noch einmal.",
  draining: "Dieser Server wird gerade beendet; versuchen Sie es noch einmal, dann antwortet ein anderer.",
  model_starting: "Das Modell wird gerade gestartet; versuchen Sie es gleich noch einmal.",
  model_unreachable: "Das Modell ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.",
  store_unavailable: "Die Datenbank ist gerade nicht erreichbar; versuchen Sie es gleich noch einmal.",
  deadline_exceeded: "Das Modell hat nicht rechtzeitig geantwortet; versuchen Sie es noch einmal.",
};

export const speechRuleMessages: Readonly<Record<string, string>> = {
  "/text":
    "Der Text ist leer oder enthält eine Pause oder Lautschrift in Klammern, die nicht gelesen werden kann. Eine Pause dauert höchstens 60.000 ms, alle zusammen höchstens 600.000 ms, und in geschweiften Klammern steht das Lautalphabet.",
  "/speaker": "Das gewählte Modell hat diese Stimme nicht; wählen Sie eine andere Stimme.",
  "/modelId": "Dieses Modell gibt es hier nicht; wählen Sie ein anderes.",
  "/lang": "Die gewählte Stimme spricht diese Sprache nicht; wählen Sie eine andere Stimme.",
  "/samplingRate":
    "Diese Abtastrate gibt es mit dem gewählten Modell und Format nicht; lassen Sie das Feld leer.",
  "/speedAlpha": "Diese Sprechgeschwindigkeit ist hier nicht erlaubt; setzen Sie sie auf 1.",
  "/inlineSpeedAlpha":
    "Geben Sie für jedes Wort in eckigen Klammern eine Geschwindigkeit als Zahl mit Dezimalpunkt an, und trennen Sie die Zahlen durch Kommas, etwa 0.5, 1.2.",
  "/repetition_penalty": "repetition_penalty muss größer als 0 sein.",
  "/temperature": "temperature muss mindestens 0 sein.",
  "/top_p": "top_p muss größer als 0 und höchstens 1 sein.",
  "/max_tokens": "Für max_tokens ist eine ganze Zahl von 200 bis 5000 erlaubt.",
};

export const licenseMessages = ({ state, cause, claims }: LicenseVerdict): string => {
  if (cause === "revoked")
    return "Die Lizenz wurde vom Aussteller widerrufen. Fordern Sie eine neue an und aktualisieren Sie das Secret der Lizenz.";
  if (cause === "unconfirmed")
    return "Der Aussteller der Lizenz ist nicht erreichbar. Sorgen Sie dafür, dass die API-Pods license.endpoint erreichen.";
  if (state === "missing") return "Es wurde keine Lizenz gefunden; legen Sie das Secret der Lizenz an.";
  if (state === "invalid")
    return claims
      ? "Die Lizenz gilt noch nicht; warten Sie bis zu ihrem Beginn oder prüfen Sie die Uhr dieses Rechners."
      : "Die Lizenz ist nicht lesbar oder ihre Signatur ist ungültig; fordern Sie eine neue an.";
  if (state === "grace" && !claims)
    return "Die Lizenz fehlt oder ist nicht mehr gültig; aktualisieren Sie das Secret der Lizenz.";
  return "Die Lizenz ist abgelaufen. Verlängern Sie sie und aktualisieren Sie das Secret der Lizenz.";
};

const soundFaultMessages = (fault: SoundsFault): string => {
  switch (fault.kind) {
    case "long":
      return `sie hat ${fault.length} Zeichen; erlaubt sind ${fault.most}`;
    case "alphabet":
      return `als Alphabet ist nur ${fault.allowed.join(" oder ")} erlaubt`;
    case "no-sound":
      return `das Zeichen ${fault.sign} gehört nicht zum Lautalphabet`;
    case "stress-mark":
      return "auf ein Betonungszeichen muss eine Silbe folgen";
    case "empty":
      return "sie ist leer";
    case "written":
      return phonemesProblems[fault.problem];
  }
};

export const plsFaultMessages = (fault: PlsFault): string => {
  switch (fault.kind) {
    case "xml":
      return `Das XML ist etwa ab Spalte ${fault.column} ungültig.`;
    case "encoding":
      return `Die Datei muss in UTF-8 vorliegen, nennt aber die Kodierung ${fault.encoding}.`;
    case "not-utf-8":
      return "Die Datei ist kein gültiges UTF-8; speichern Sie die Datei als UTF-8.";
    case "doctype":
      return "Dokumenttypen (<!DOCTYPE …>) und eigene Entitäten werden nicht unterstützt; entfernen Sie den Dokumenttyp.";
    case "deep":
      return `Elemente dürfen höchstens ${fault.most} Ebenen tief verschachtelt sein.`;
    case "root":
      return `Die Datei muss mit <lexicon version="1.0" xmlns="${fault.namespace}" …> beginnen.`;
    case "version":
      return 'Das Wörterbuch muss das Attribut version="1.0" haben.';
    case "alphabet":
      return `Als Alphabet des Wörterbuchs ist nur ${fault.allowed.join(" oder ")} erlaubt.`;
    case "language":
      return "xml:lang muss die Sprache einer Stimme sein, etwa en oder en-US.";
    case "misplaced":
      return `<${fault.element}> ist in <${fault.parent}> nicht erlaubt.`;
    case "no-grapheme":
      return "Ein <lexeme> muss ein <grapheme> haben.";
    case "no-phoneme":
      return "Ein <lexeme> muss ein <phoneme> haben; ein <alias> wird nicht unterstützt.";
    case "phoneme":
      return `Die Aussprache ${fault.text}: ${soundFaultMessages(fault.why)}.`;
    case "grapheme":
      return `Die Schreibweise ${fault.text}: Ein Wort muss 1 bis 60 Buchstaben haben; zwischen Buchstaben sind Bindestriche und Apostrophe erlaubt.`;
    case "twice":
      return `${fault.text} steht bereits in Zeile ${fault.line}, mit einer anderen Aussprache.`;
    case "full":
      return `Ein Wörterbuch darf höchstens ${fault.most} Wörter haben.`;
  }
};
