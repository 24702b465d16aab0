import { Link } from "@tanstack/react-router";
import type { Answer } from "../../api/index.ts";
import styles from "./template-list.module.css";

export type Template = Answer<"get", "/api/1/admin/email/templates">["templates"][number];

interface TemplateListProps {
  readonly templates: readonly Template[];
  readonly shown: string;
}

export function TemplateList({ templates, shown }: TemplateListProps) {
  return (
    <nav aria-label="Templates">
      <ul className={styles.list}>
        {templates.map(({ slug, title, list }) => (
          <li key={slug}>
            <Link
              to="/templates"
              search={{ template: slug } as never}
              className={styles.template}
              aria-current={slug === shown ? "true" : undefined}
            >
              <span className={styles.title}>{title}</span>
              <span className={styles.about}>
                {slug}
                {list !== null && `, list ${list}`}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
