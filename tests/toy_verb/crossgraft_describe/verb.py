"""The verb: data, options and run in, a result out."""

from dataclasses import dataclass, replace

import pandas as pd

from crossgraft.data import open_dataset
from crossgraft.options._option import configuration
from crossgraft.result import Result
from crossgraft.running import verb
from crossgraft.running.publishing import publish
from crossgraft_describe.options import DescribeOptions
from crossgraft_describe.record import DescriptionRecord, count_classes


@dataclass(frozen=True, eq=False, repr=False)
class Description(Result[DescriptionRecord]):
    def summary(self):
        return self.record.answer

    def to_frame(self):
        return pd.DataFrame([row.model_dump() for row in self.record.classes])


@verb("describe", DescribeOptions)
def describe(data, options, run):
    """Count the images of each class.

    Args:
        data: Images.
        {options}
    """
    dataset = open_dataset(data, group_column=options.group_column, reporter=run.reporter)
    result = Description(count_classes(dataset, at_least=options.at_least))
    with run.directory(data, typed=configuration(options), resolved={}, out=options.out) as folder:
        if folder is None:
            return result
        page = publish(folder, result.record, run.reporter, tables={"classes.csv": result.to_frame()})
        return replace(result, out=folder.path, report=page)
