export const ICON_PATH = "/favicon.svg";

/** The bell, drawn once for pages and, as pixels, for browsers that ask for the old name. */
export const ICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="15" fill="#2b4c7e"/><path d="M32 12c-9 0-13.5 6.5-14 15.5-.4 7-2.5 11-6 14.5h40c-3.5-3.5-5.600-7.5-6-14.5C45.5 18.5 41 12 32 12z" fill="#f2c14e"/><rect x="9" y="42" width="46" height="5" rx="2.5" fill="#f7d67f"/><circle cx="32" cy="52" r="4.5" fill="#f2c14e"/><rect x="29.5" y="7" width="5" height="7" rx="2.5" fill="#f7d67f"/></svg>`;

const PIXELS = Buffer.from(
  [
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAYAAABzenr0AAADIklEQVR4nLyXS0xTQRSG/7mlQMoztiDPUCwBaamGhYkxGE0wCC2wcqFuMCZGFi4M",
    "YaFCK2JiXBgT40YTFrJRE10YKcpKWejChRGDNoENyGNDQB4WKPQxzlzk2cKdKeCXNDmdOTPnv3PPzD0Thy1YHa5LUEg1QMsIJSUgiMNuoAhSQgcI",
    "RT9Aen52t3du7CarhqWqLTMxPtzBzDrsIxT0jY4GLvd3359eE2CtdVcy4zkzM/FfoKMUykWv584n5V/LlViC15Sv/OQh+UzENdUqdbrOK4S8gCRm",
    "Jvd188obPPeAYngC0oQpvcBioxExYEyJbsvAY8exrDCvp6I2FtMi6o9MwZa9hFAgX21rPD4Kb0ECXn0zYWw6UXwyFptYnS4/ISRBxN9ZNoUbVaOI",
    "00XvD4aA2x4zPgymQwRK6ZIiGrzCMouW6pFtg3N4X3vdMMrz/0AEHlsRcdTrwnA5fvEBmr46NqPbMQK+viIICagsmUFqYhiiZKUGcKzAJ+QrJKDC",
    "MgdZThyaFfITOudLsxYgiz1HbIzAClBkpAQgS6HRD5E80BRgSg6yJBRLqI0YEsIwJmkL1xSQl76EWMlNX9b00RRgzxXL5mhYs7XzQFPAqSL5HbDK",
    "ySLtnbCjAHuOD7Yc+R2wSnmeD0UZi4hJAD/9bp4dw27gJ2dLDTu+lbC8gOYzYyg0+bFbDh9cRFPl+Lb9xFbr3rTHjpqBhw0EaUnYU2bngaZOiu/D",
    "m9sjVsDBSqy9Ds7hczqilG8RR/Hj9xRDrLxKNUATgz7AahmK+UC8pu8cy2XPV77YZGcBPj/By8/Q5F79EE4Xz6iJ9nEgDbfeFmoPilJ6Kawq+QJJ",
    "DhgCa8E53DYmaZ96W+GxWQ6QPkhCCI0ymURhuT5TnxKiSge7rYRkhk3Nx6OX1X3sCdT/3P69oJeZAmrMMH26cjNyup+w1bwKSUzJAbaNKCZ82kkY",
    "KQCPvJ726+o2DCpKK2uYhCSTPn1swSkdh09p5bYqYLCrbVJHl4v5xRH7T9eCXlfm7W1TP7MRmWNzuhuYxmqWU/a9vJ6zUD/YO+/xvrv7bGP3XwAA",
    "AP//oK8i9AAAAAZJREFUAwCvxvpF3q005wAAAABJRU5ErkJggg==",
  ].join(""),
  "base64",
);

/** A PNG of 32 by 32 points in the envelope that `favicon.ico` has had since 1999. */
export const ICON_ICO = Buffer.concat([
  Buffer.from([0, 0, 1, 0, 1, 0, 32, 32, 0, 0, 1, 0, 32, 0]),
  Buffer.from(new Uint32Array([PIXELS.length, 22]).buffer),
  PIXELS,
]);
